import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import type { LeftOut } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { barring, type BarringState } from "./provider-states.ts";
import { siftEach } from "./sift.ts";

/** What leaving out looks at. */
interface Facts {
  health: HealthMoment;
  /** Whether a caller's own key serves a route; what the platform's requests met says nothing of it. */
  hasOwnKey: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
}

/** Who may be asked, by the states of providers. */
interface Able {
  kept: PlannedCandidate[][];
  /** Nobody is left, since every budget is spent. */
  emptiedBy: "budget_exhausted" | undefined;
}

/**
 * Leaves out whom the platform does not ask at present. Budgets are the operator's word and hold; exclusion and quarantine
 * are guesses at a provider's health, so where they would leave nobody, all of them are asked all the same.
 */
export function leaveOutUnwell(
  members: PlannedCandidate[][],
  { facts, leftOut }: { facts: Facts; leftOut: LeftOut[] },
): Able {
  const unwell = countUnwell(members, facts);
  if (unwell === 0) return { kept: members, emptiedBy: undefined };
  const nobodyElse = unwell === members.reduce((sum, { length }) => sum + length, 0);
  const kept = siftEach(members, {
    keeps: (candidate) => {
      const state = stateOf(candidate, facts);
      return state === undefined || (nobodyElse && state !== "budget_exhausted");
    },
    drop: (candidate) => {
      const rule = stateOf(candidate, facts) as BarringState;
      leftOut.push({ provider: candidate.row.provider.id, model: candidate.model.id, rule });
    },
  });
  if (nobodyElse) {
    for (const candidate of kept.flat())
      candidate.note = `${stateOf(candidate, facts)}, but nobody else is left`;
  }
  return { kept, emptiedBy: kept.length === 0 ? "budget_exhausted" : undefined };
}

function countUnwell(members: readonly PlannedCandidate[][], facts: Facts): number {
  let count = 0;
  for (const member of members) {
    for (const candidate of member) if (stateOf(candidate, facts) !== undefined) count += 1;
  }
  return count;
}

/** Why the platform does not ask a candidate; undefined where it does. */
function stateOf(
  { row, route, model }: PlannedCandidate,
  { health, hasOwnKey }: Facts,
): BarringState | undefined {
  const state = barring(health.stateOf(row.provider));
  return state === undefined || hasOwnKey?.(route, model) === true ? undefined : state;
}
