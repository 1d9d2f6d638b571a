import type { RoutingRequest } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { permits } from "./supports.ts";

/** The wishes of a request that no route has to keep. */
type Wishes = Pick<RoutingRequest, "preferences" | "wishedParameters">;

/** Whether a request wishes for anything at all, which few do. */
export const hasWishes = ({ preferences: { minThroughput, maxLatencyMs }, wishedParameters = [] }: Wishes): boolean =>
  minThroughput !== undefined || maxLatencyMs !== undefined || wishedParameters.length > 0;

/**
 * The soft preference that a candidate misses (rule 4 of the provider object, rule 6 of reasoning); undefined
 * when it keeps them all, or nothing is known of it.
 */
export function missedPreference(
  candidate: PlannedCandidate,
  { preferences: { minThroughput, maxLatencyMs }, wishedParameters }: Wishes,
  health: HealthMoment,
): string | undefined {
  const undeclared = wishedParameters?.find((parameter) => !permits(candidate, parameter));
  if (undeclared !== undefined) return undeclared;
  if (minThroughput === undefined && maxLatencyMs === undefined) return undefined;
  const measures = health.measuresOf(candidate.row.provider, candidate.model.id);
  if (minThroughput?.some((cutoff) => !measures.keepsThroughput(cutoff))) return "preferred_min_throughput";
  return maxLatencyMs?.some((cutoff) => !measures.keepsLatency(cutoff)) ? "preferred_max_latency" : undefined;
}
