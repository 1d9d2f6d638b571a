import type { Candidate, LeftOut } from "./candidate.ts";
import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";

/** Why a provider is treated otherwise than others (contract, "Health and routing states"; docs/health.md says when). */
export type ProviderState = "deprioritized" | "excluded" | "quarantined" | "budget_exhausted";

/** Tells the gravest state of a provider; undefined for one that is well. */
export type StateLookup = (providerId: string) => ProviderState | undefined;

/** What leaving out looks at. */
interface Facts {
  health: { stateOf: StateLookup };
  /** Whether a caller's own key serves a route; what the platform's requests met says nothing of it. */
  hasOwnKey?: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
}

/** The state that a provider is not asked in; one that is deprioritized is asked last. */
export function barringState(providerId: string, health: { stateOf: StateLookup }): Exclude<ProviderState, "deprioritized"> | undefined {
  const state = health.stateOf(providerId);
  return state === "deprioritized" ? undefined : state;
}

/** Who may be asked, by the states of providers. */
interface Able {
  kept: readonly Candidate[];
  /** Nobody is left, since every budget is spent. */
  emptiedBy: "budget_exhausted" | undefined;
  /** Those that are kept are in a state in which nobody asks them while there is somebody else. */
  nobodyElse: boolean;
}

/**
 * Leaves out whom the platform does not ask at present. Budgets are the operator's word and hold; exclusion and quarantine
 * are guesses at a provider's health, so where they would leave nobody, all of them are asked all the same.
 */
export function leaveOutUnwell(candidates: readonly Candidate[], { facts, leftOut }: { facts: Facts; leftOut: LeftOut[] }): Able {
  const stateOf = ({ route, model }: Candidate): ReturnType<typeof barringState> => {
    const state = barringState(route.provider.id, facts.health);
    return state === undefined || facts.hasOwnKey?.(route, model) === true ? undefined : state;
  };
  const allWell = !candidates.some((candidate) => stateOf(candidate) !== undefined);
  if (allWell) return { kept: candidates, emptiedBy: undefined, nobodyElse: false };
  const well = candidates.filter((candidate) => stateOf(candidate) === undefined);
  const nobodyElse = well.length === 0;
  const kept = nobodyElse ? candidates.filter((candidate) => stateOf(candidate) !== "budget_exhausted") : well;
  for (const candidate of candidates) {
    const state = stateOf(candidate);
    if (state === undefined || (nobodyElse && state !== "budget_exhausted")) continue;
    leftOut.push({ provider: candidate.route.provider.id, model: candidate.model.id, rule: state });
  }
  return { kept, emptiedBy: kept.length === 0 ? "budget_exhausted" : undefined, nobodyElse };
}
