import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import type { LeftOut } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { barring, type BarringState } from "./provider-states.ts";
import { sift } from "./sift.ts";

/** What leaving out looks at. */
interface Facts {
  health: HealthMoment;
  /** Whether a caller's own key serves a route; what the platform's requests met says nothing of it. */
  hasOwnKey?: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
}

/** Who may be asked, by the states of providers. */
interface Able {
  kept: PlannedCandidate[];
  /** Nobody is left, since every budget is spent. */
  emptiedBy: "budget_exhausted" | undefined;
}

/**
 * Leaves out whom the platform does not ask at present. Budgets are the operator's word and hold; exclusion and quarantine
 * are guesses at a provider's health, so where they would leave nobody, all of them are asked all the same.
 */
export function leaveOutUnwell(candidates: PlannedCandidate[], { facts, leftOut }: { facts: Facts; leftOut: LeftOut[] }): Able {
  const stateOf = ({ row, route, model }: PlannedCandidate): BarringState | undefined => {
    const state = barring(facts.health.stateOf(row.provider));
    return state === undefined || facts.hasOwnKey?.(route, model) === true ? undefined : state;
  };
  const nobodyElse = candidates.length > 0 && candidates.every((candidate) => stateOf(candidate) !== undefined);
  const kept = sift(candidates, {
    keeps: (candidate) => isAsked(stateOf(candidate), nobodyElse),
    drop: (candidate) => {
      const rule = stateOf(candidate) as BarringState;
      leftOut.push({ provider: candidate.row.provider.id, model: candidate.model.id, rule });
    },
  });
  if (nobodyElse) for (const candidate of kept) candidate.note = `${stateOf(candidate)}, but nobody else is left`;
  return { kept, emptiedBy: nobodyElse && kept.length === 0 ? "budget_exhausted" : undefined };
}

const isAsked = (state: BarringState | undefined, nobodyElse: boolean): boolean =>
  state === undefined || (nobodyElse && state !== "budget_exhausted");
