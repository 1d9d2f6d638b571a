import type { RoutingRequest } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { balancesLoad } from "./order-policies.ts";
import { permits } from "./supports.ts";

/** The soft preferences of a request, which no route has to keep. */
type Wishes = Pick<RoutingRequest, "preferences" | "wishedParameters">;

/** The parameters that routes are reordered by: none where the caller chose the order itself, by name or by measure. */
const reorderingParameters = ({ preferences, wishedParameters = [] }: Wishes): readonly string[] =>
  (balancesLoad(preferences) ? wishedParameters : []);

/**
 * Whether soft preferences may move a candidate to the end, which few requests call for. Providers named in order, in
 * the body, in a preset or by header, are asked in that order.
 */
export const hasWishes = (wishes: Wishes): boolean => {
  const { order, minThroughput, maxLatencyMs } = wishes.preferences;
  if (order !== undefined) return false;
  return minThroughput !== undefined || maxLatencyMs !== undefined || reorderingParameters(wishes).length > 0;
};

/**
 * The soft preference that a candidate misses (rule 4 of the provider object, rule 6 of reasoning); undefined
 * when it keeps them all, or nothing is known of it.
 */
export function missedPreference(
  candidate: PlannedCandidate,
  wishes: Wishes,
  health: HealthMoment,
): string | undefined {
  const { minThroughput, maxLatencyMs } = wishes.preferences;
  const undeclared = reorderingParameters(wishes).find((parameter) => !permits(candidate, parameter));
  if (undeclared !== undefined) return undeclared;
  if (minThroughput === undefined && maxLatencyMs === undefined) return undefined;
  const measures = health.measuresOf(candidate.row.provider, candidate.model.id);
  if (minThroughput?.some((cutoff) => !measures.keepsThroughput(cutoff))) return "preferred_min_throughput";
  return maxLatencyMs?.some((cutoff) => !measures.keepsLatency(cutoff)) ? "preferred_max_latency" : undefined;
}
