import { isoOrNull } from "../../platform/kernel/clock.ts";
import type { JobReport } from "./job-registry.ts";
import type { RoutingState } from "./provider-health.ts";
import type { SmokeResult } from "./smoke-store.ts";
import { healthThresholds, smokeCadence } from "./thresholds.ts";
import type { TrafficSums } from "./traffic.ts";

/** The status of a component, and of the whole (contract, "Health snapshot"). */
export type ComponentStatus =
  | "healthy"
  | "degraded"
  /** Some parts are degraded, but requests are served. */
  | "partial"
  | "down"
  /** Too little traffic to judge. */
  | "no_signal";

/** A component of the snapshot. */
export interface Component<Data = object> {
  status: ComponentStatus;
  description: string;
  note: string | null;
  data: Data;
}

/**
 * Returns the status of a whole whose parts are equals: `partial` while at least one of them is
 * healthy.
 */
export function statusOfParts(parts: readonly ComponentStatus[]): ComponentStatus {
  const telling = parts.filter((status) => status !== "no_signal");
  if (telling.length === 0) return "no_signal";
  if (telling.every((status) => status === "healthy")) return "healthy";
  if (telling.every((status) => status === "down")) return "down";
  return telling.includes("healthy") ? "partial" : "degraded";
}

/** The contract's figures of the smoke tests. */
export interface SmokeData {
  total: number;
  passed: number;
  failed: number;
  skipped: number;
  last_run: string | null;
  stale: boolean;
  /** The daily minute and hour in UTC, as a cron expression. */
  cadence: string;
}

const smokeTexts: Record<ComponentStatus, string> = {
  healthy: "Every provider answered its last test.",
  degraded: "The last tests are older than two days.",
  partial: "Some providers failed their last test.",
  down: "Every provider failed its last test.",
  no_signal: "No test has run yet.",
};

/** Returns the component `smoke_tests`, from the last test of each provider. */
export function smokeComponent(
  results: readonly SmokeResult[],
  { lastRunMs, nowMs }: { lastRunMs: number | undefined; nowMs: number },
): Component<SmokeData> {
  const count = (outcome: SmokeResult["outcome"]): number =>
    results.filter((result) => result.outcome === outcome).length;
  const [passed, failed, skipped] = [count("passed"), count("failed"), count("skipped")];
  const stale = lastRunMs !== undefined && nowMs - lastRunMs > healthThresholds.smokeStaleMs;
  const status =
    passed + failed === 0
      ? "no_signal"
      : stale
        ? "degraded"
        : failed === 0
          ? "healthy"
          : passed === 0
            ? "down"
            : "partial";
  return {
    status,
    description: smokeTexts[status],
    note: null,
    data: {
      total: results.length,
      passed,
      failed,
      skipped,
      last_run: isoOrNull(lastRunMs ?? null),
      stale,
      cadence: smokeCadence,
    },
  };
}

/** The contract's figures of the service's own jobs. */
export interface WorkflowData {
  healthy: number;
  stale: number;
  failing: number;
  /** Always 0: jobs that never ran are left out. */
  never_ran: 0;
  workflows: readonly JobReport[];
}

/** Returns the component `workflows`; null before any job has run. */
export function workflowComponent(reports: readonly JobReport[]): Component<WorkflowData> | null {
  if (reports.length === 0) return null;
  const count = (state: JobReport["state"]): number =>
    reports.filter((report) => report.state === state).length;
  const [healthy, stale, failing] = [count("healthy"), count("stale"), count("failing")];
  const status = stale + failing === 0 ? "healthy" : healthy === 0 ? "degraded" : "partial";
  return {
    status,
    note: null,
    description:
      status === "healthy"
        ? "The service's own jobs run."
        : "Some of the service's own jobs fail or do not run.",
    data: { healthy, stale, failing, never_ran: 0, workflows: reports },
  };
}

/** A provider that requests can be routed to. */
export interface RoutedProvider {
  id: string;
  name: string;
  /** The path or address of its logo. */
  logo: string;
}

/** The contract's figures of routing. */
export interface RoutingData {
  summary: {
    total: number;
    healthy: number;
    deprioritized: number;
    excluded: number;
    quarantined: number;
    budget_exhausted: number;
  };
  /**
   * The degraded providers, with an entry for each state, so that a provider may occur more than
   * once.
   */
  degraded: (RoutedProvider & { state: RoutingState })[];
}

const isUsable = (states: readonly RoutingState[]): boolean =>
  states.every((state) => state === "deprioritized");

/** Returns the component `routing`; null where there is no provider to route to. */
export function routingComponent(
  providers: readonly RoutedProvider[],
  statesOf: (providerId: string) => readonly RoutingState[],
): Component<RoutingData> | null {
  if (providers.length === 0) return null;
  const degraded = providers.flatMap(({ id, name, logo }) =>
    statesOf(id).map((state) => ({ id, name, logo, state })),
  );
  const count = (wanted: RoutingState): number =>
    degraded.filter(({ state }) => state === wanted).length;
  const usable = providers.filter(({ id }) => isUsable(statesOf(id))).length;
  const status = degraded.length === 0 ? "healthy" : usable === 0 ? "down" : "partial";
  return {
    status,
    note: null,
    description: {
      healthy: "Every provider can be routed to.",
      partial: "Some providers are asked last or not at all.",
      down: "No provider can be routed to.",
    }[status],
    data: {
      summary: {
        total: providers.length,
        healthy: providers.filter(({ id }) => statesOf(id).length === 0).length,
        deprioritized: count("deprioritized"),
        excluded: count("excluded"),
        quarantined: count("quarantined"),
        budget_exhausted: count("budget_exhausted"),
      },
      degraded,
    },
  };
}

/**
 * Returns the component of an optional archive, which never changes the status of the whole. `up`
 * is undefined where it is not in use.
 */
export function archiveComponent(
  name: string,
  up: boolean | undefined,
): Component<Record<string, never>> {
  if (up === undefined)
    return { status: "no_signal", description: `${name} is not in use.`, note: null, data: {} };
  return {
    status: up ? "healthy" : "down",
    description: up ? `${name} answers.` : `${name} does not answer.`,
    note: null,
    data: {},
  };
}

/** The contract's figures of all requests of the last hour. */
export interface ApiData {
  requests_1h: number;
  error_rate: number;
  latency_ms: { avg: number };
  /** The share of input tokens that providers read from their prompt caches. */
  cache_hit_rate: number;
}

/** A provider that had traffic in the last hour. */
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

/** Returns the status that an hour's traffic shows by itself. */
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

/** Returns the component `api`. */
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

/** States in which a provider gets no requests at all, regardless of its traffic. */
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

/** Returns the component `providers`, sorted by name. */
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
