import type { ProviderFilter, RoutingRequest } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { balancesLoad } from "./order-policies.ts";
import { permits } from "./supports.ts";

/** The soft preferences of a request, which no route has to keep. */
export interface Wishes extends Pick<ProviderFilter, "minThroughput" | "maxLatencyMs"> {
  /** Parameters that a route had better declare. */
  parameters: readonly string[];
  /** The output cap that a route had better allow, as far as any of them does. */
  outputTokens: number | undefined;
}

/** What a candidate misses that allows less output than another. */
const lengthMissed = "max_tokens";

const noParameters: readonly string[] = [];

const largestCap = ({ route }: PlannedCandidate): number =>
  route.maxCompletionTokens ?? Number.POSITIVE_INFINITY;

/** The output that is wished for, or the most that any candidate allows; undefined where all of them allow it. */
function lengthAmong(
  members: readonly PlannedCandidate[][],
  wishedTokens: number | undefined,
): number | undefined {
  if (wishedTokens === undefined) return undefined;
  let [least, most] = [wishedTokens, 0];
  for (const member of members) {
    for (const candidate of member) {
      const cap = largestCap(candidate);
      if (cap < least) least = cap;
      if (cap > most) most = cap;
    }
  }
  return least === wishedTokens ? undefined : Math.min(wishedTokens, most);
}

/**
 * The soft preferences that may move one of these candidates to the end; undefined where none can, as for most requests. Providers
 * named in order, in the body, in a preset or by header, are asked in that order. A `sort` is one among routes that allow the length.
 */
export function wishesAmong(
  members: readonly PlannedCandidate[][],
  request: RoutingRequest,
): Wishes | undefined {
  const { preferences, wishedParameters = noParameters, wishedOutputTokens } = request;
  const { order, minThroughput, maxLatencyMs } = preferences;
  if (order !== undefined) return undefined;
  const parameters = balancesLoad(preferences) ? wishedParameters : noParameters;
  const outputTokens = lengthAmong(members, wishedOutputTokens);
  if (
    parameters.length === 0 &&
    outputTokens === undefined &&
    minThroughput === undefined &&
    maxLatencyMs === undefined
  )
    return undefined;
  return { parameters, outputTokens, minThroughput, maxLatencyMs };
}

/**
 * The soft preference that a candidate misses (rule 4 of the provider object, rule 6 of reasoning); undefined
 * when it keeps them all, or nothing is known of it.
 */
export function missedPreference(
  candidate: PlannedCandidate,
  { parameters, outputTokens, minThroughput, maxLatencyMs }: Wishes,
  health: HealthMoment,
): string | undefined {
  if (outputTokens !== undefined && largestCap(candidate) < outputTokens) return lengthMissed;
  const undeclared = parameters.find((parameter) => !permits(candidate, parameter));
  if (undeclared !== undefined) return undeclared;
  if (minThroughput === undefined && maxLatencyMs === undefined) return undefined;
  const measures = health.measuresOf(candidate.row.provider, candidate.model.id);
  if (minThroughput?.some((cutoff) => !measures.keepsThroughput(cutoff)))
    return "preferred_min_throughput";
  return maxLatencyMs?.some((cutoff) => !measures.keepsLatency(cutoff))
    ? "preferred_max_latency"
    : undefined;
}

/** Whether a candidate would cut an answer shorter than another has to. */
export const cutsShort = ({ missed }: PlannedCandidate): boolean => missed === lengthMissed;
