import { isoOrNull } from "../../platform/lib/clock.ts";
import type { Component, ComponentStatus } from "./component.ts";
import type { JobReport } from "./job-registry.ts";
import type { RoutingState } from "./provider-health.ts";
import type { SmokeResult } from "./smoke-store.ts";
import { healthThresholds, smokeCadence } from "./thresholds.ts";

/** The contract's figures of the smoke tests. */
export interface SmokeData {
  total: number;
  passed: number;
  failed: number;
  skipped: number;
  last_run: string | null;
  stale: boolean;
  /** Minute and hour of every day, as cron has it, in UTC. */
  cadence: string;
}

const smokeTexts: Record<ComponentStatus, string> = {
  healthy: "Every provider answered its last test.",
  degraded: "The last tests are older than two days.",
  partial: "Some providers failed their last test.",
  down: "Every provider failed its last test.",
  no_signal: "No test has run yet.",
};

/** The component `smoke_tests`, from the last test of each provider. */
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

/** The component `workflows`; null before any job has run. */
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
  /** Path or address of its picture. */
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
  /** One entry a state, so that a provider may stand here more than once. */
  degraded: (RoutedProvider & { state: RoutingState })[];
}

const isUsable = (states: readonly RoutingState[]): boolean =>
  states.every((state) => state === "deprioritized");

/** The component `routing`; null where there is no provider to route to. */
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

/** An optional archive, which never moves the whole; `up` is undefined where it is not in use. */
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
