import type { Candidate, RoutingRequest } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import { supports } from "./supports.ts";

/**
 * The soft preference that a candidate misses (rule 4 of the provider object, rule 6 of reasoning); undefined
 * when it keeps them all, or nothing is known of it.
 */
export function missedPreference(
  candidate: Candidate,
  { preferences: { minThroughput, maxLatencyMs }, wishedParameters }: Pick<RoutingRequest, "preferences" | "wishedParameters">,
  health: HealthMoment,
): string | undefined {
  const undeclared = wishedParameters?.find((parameter) => !supports(candidate, parameter));
  if (undeclared !== undefined) return undeclared;
  if (minThroughput === undefined && maxLatencyMs === undefined) return undefined;
  const measures = health.measuresOf(candidate.route.provider.id, candidate.model.id);
  if (minThroughput?.some((cutoff) => !measures.keepsThroughput(cutoff))) return "preferred_min_throughput";
  return maxLatencyMs?.some((cutoff) => !measures.keepsLatency(cutoff)) ? "preferred_max_latency" : undefined;
}
