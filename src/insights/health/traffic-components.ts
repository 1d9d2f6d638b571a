import type { Component, ComponentStatus } from "./component.ts";
import { statusOfParts } from "./component.ts";
import type { RoutingState } from "./provider-health.ts";
import type { TrafficSums } from "./traffic-window.ts";
import { healthThresholds } from "./thresholds.ts";

/** The contract's figures of all requests of the last hour. */
export interface ApiData {
  requests_1h: number;
  error_rate: number;
  latency_ms: { avg: number };
  /** Share of the input tokens that providers read from their prompt caches. */
  cache_hit_rate: number;
}

/** A backend that had traffic in the last hour. */
export interface ProviderRow {
  name: string;
  status: ComponentStatus;
  description: string;
  latency_ms?: number;
  error_rate?: number;
  requests_1h: number;
}

const rounded = (value: number): number => Math.round(value * 10_000) / 10_000;
const share = (part: number, whole: number): number => (whole === 0 ? 0 : rounded(part / whole));
const average = ({ latencyMs, timed }: TrafficSums): number =>
  timed === 0 ? 0 : Math.round(latencyMs / timed);
const percent = (rate: number): string => `${Math.round(rate * 1_000) / 10} %`;

/** What the traffic of an hour says by itself. */
export function trafficStatus({
  requests,
  errors,
}: Pick<TrafficSums, "requests" | "errors">): ComponentStatus {
  if (requests < healthThresholds.signalRequestsMin) return "no_signal";
  const rate = errors / requests;
  if (rate >= healthThresholds.downErrorRate) return "down";
  return rate >= healthThresholds.degradedErrorRate ? "degraded" : "healthy";
}

const trafficTexts: Record<ComponentStatus, string> = {
  healthy: "Requests are answered.",
  degraded: "More requests fail than should.",
  partial: "Some requests fail.",
  down: "Most requests fail.",
  no_signal: "Too few requests in the last hour to tell.",
};

/** The component `api`. */
export function apiComponent(sums: TrafficSums): Component<ApiData> {
  const status = trafficStatus(sums);
  return {
    status,
    description: trafficTexts[status],
    note: null,
    data: {
      requests_1h: sums.requests,
      error_rate: share(sums.errors, sums.requests),
      latency_ms: { avg: average(sums) },
      cache_hit_rate: share(sums.cachedTokens, sums.promptTokens),
    },
  };
}

/** States that leave a provider out altogether: whatever its traffic says, nobody gets to it. */
const outBy: Partial<Record<RoutingState, string>> = {
  quarantined: "It failed again and again, and is left alone for a while.",
  budget_exhausted: "The budget for it is spent for today.",
  excluded: "Its smoke test failed.",
};

function providerRow(
  name: string,
  { sums, states }: { sums: TrafficSums; states: readonly RoutingState[] },
): ProviderRow {
  const out = states.map((state) => outBy[state]).find((text) => text !== undefined);
  const own = trafficStatus(sums);
  const rate = share(sums.errors, sums.requests);
  return {
    name,
    status: out === undefined ? own : "down",
    description:
      out ??
      (own === "no_signal" || own === "healthy"
        ? trafficTexts[own]
        : `${percent(rate)} of its answers failed.`),
    ...(sums.timed === 0 ? {} : { latency_ms: average(sums) }),
    error_rate: rate,
    requests_1h: sums.requests,
  };
}

const providersTexts: Record<ComponentStatus, string> = {
  healthy: "All providers with traffic answer.",
  degraded: "Every provider with traffic has trouble.",
  partial: "Some providers have trouble; requests go to the others.",
  down: "No provider with traffic answers.",
  no_signal: "Too few requests in the last hour to tell.",
};

/** The component `providers`, by name. */
export function providersComponent(
  traffic: ReadonlyMap<string, TrafficSums>,
  statesOf: (providerId: string) => readonly RoutingState[],
): Component<{ providers: ProviderRow[] }> {
  const rows = [...traffic]
    .map(([name, sums]) => providerRow(name, { sums, states: statesOf(name) }))
    .sort((left, right) => (left.name < right.name ? -1 : 1));
  const status = statusOfParts(rows.map((row) => row.status));
  return { status, description: providersTexts[status], note: null, data: { providers: rows } };
}
