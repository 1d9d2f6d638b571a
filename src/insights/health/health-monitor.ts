import type { Clock } from "../../platform/kernel/clock.ts";
import {
  apiComponent,
  archiveComponent,
  providersComponent,
  routingComponent,
  smokeComponent,
  workflowComponent,
  type RoutedProvider,
  type ApiData,
  type Component,
  type ComponentStatus,
  type ProviderRow,
  type RoutingData,
  type SmokeData,
  type WorkflowData,
} from "./components.ts";
import type { HealthEvents, Incident, HealthEvent } from "./health-events.ts";
import type { JobRegistry } from "./job-registry.ts";
import type { Budget, Traffic, TrafficSums } from "./traffic.ts";
import type { ProviderBudgets } from "./provider-budgets.ts";
import type { RoutingState } from "./provider-health.ts";
import type { ProviderStates } from "./provider-states.ts";
import type { SmokeTests } from "./smoke-tests.ts";
import type { SmokeResult } from "./smoke-store.ts";

/** The parts of the snapshot. All of it is in memory, so that no outage keeps it from clients. */
interface HealthParts {
  traffic: Traffic;
  states: ProviderStates;
  smoke: SmokeTests;
  jobs: JobRegistry;
  events: readonly HealthEvent[];
  /** The providers that requests can be routed to. */
  routed: readonly RoutedProvider[];
  isPublic(providerId: string): boolean;
  /** Whether Postgres answered its last probe; undefined where it is not in use. */
  postgresUp: boolean | undefined;
  /** Whether the archive answered its last probe; undefined where there is none. */
  clickHouseUp?: boolean | undefined;
  /**
   * The share of the gateways' shared state (Valkey) that is available, from 0 to 1; undefined where
   * there is none.
   */
  sharedUp?: number | undefined;
  version: string;
  nowMs: number;
}

/** The health snapshot of the contract. */
export interface HealthSnapshot {
  status: ComponentStatus;
  description: string;
  version: string;
  checked_at: string;
  components: {
    api: Component<ApiData>;
    providers: Component<{ providers: ProviderRow[] }>;
    smoke_tests: Component<SmokeData> | null;
    workflows: Component<WorkflowData> | null;
    routing: Component<RoutingData> | null;
    postgres: Component;
    clickhouse: Component;
  };
  events: { at: string; upstream_id: string; from: string; to: string; message?: string }[];
}

const texts: Record<ComponentStatus, string> = {
  healthy: "Everything works.",
  degraded: "More requests fail than should.",
  partial: "Some parts have trouble; requests are served.",
  down: "Requests cannot be served.",
  no_signal: "Too few requests in the last hour to tell.",
};

/**
 * Returns the component `api`. Gateways cannot serve any workspace without their shared server, nor
 * the workspaces of a cluster's part without that part, since they do not know what these can spend.
 */
function apiWith(traffic: Traffic, sharedUp: number): Component<ApiData> {
  const component = apiComponent(traffic.ofService());
  if (sharedUp === 1 || (sharedUp > 0 && component.status === "down")) return component;
  const [status, subject] =
    sharedUp === 0
      ? (["down", "The server"] as const)
      : (["degraded", `${Math.ceil((1 - sharedUp) * 100)} %`] as const);
  const note = `${subject} of shared state (Valkey) does not answer; inference is refused until it does.`;
  return { ...component, status, description: texts[status], note };
}

/** Returns the snapshot of a moment. */
function healthSnapshot(parts: HealthParts): HealthSnapshot {
  const { traffic, states, smoke, jobs, nowMs } = parts;
  const statesOf = (providerId: string) => states.statesOf(providerId);
  const components: HealthSnapshot["components"] = {
    api: apiWith(traffic, parts.sharedUp ?? 1),
    providers: providersComponent(traffic.ofProviders(parts.isPublic), statesOf),
    smoke_tests: smoke.applies
      ? smokeComponent(smoke.current(), { lastRunMs: smoke.lastRun, nowMs })
      : null,
    workflows: workflowComponent(jobs.reports()),
    routing: routingComponent(parts.routed, statesOf),
    postgres: archiveComponent("Postgres", parts.postgresUp),
    clickhouse: archiveComponent("ClickHouse", parts.clickHouseUp),
  };
  const { api, providers, smoke_tests: smokeTests, workflows, routing } = components;
  const status = overallStatus({
    api: api.status,
    routing: routing?.status,
    around: [providers.status, smokeTests?.status, workflows?.status],
  });
  return {
    status,
    description: texts[status],
    version: parts.version,
    checked_at: new Date(nowMs).toISOString(),
    components,
    events: parts.events.map(({ atMs, upstreamId, from, to, message }) => ({
      at: new Date(atMs).toISOString(),
      upstream_id: upstreamId,
      from,
      to,
      ...(message === undefined ? {} : { message }),
    })),
  };
}

/**
 * Returns the status of the whole. The status of requests comes first; trouble around them makes
 * the whole `partial` at worst. Undefined means that a component does not apply.
 */
export function overallStatus({
  api,
  routing,
  around,
}: {
  api: ComponentStatus;
  routing: ComponentStatus | undefined;
  around: readonly (ComponentStatus | undefined)[];
}): ComponentStatus {
  if (api === "down" || routing === "down") return "down";
  if (api === "degraded") return "degraded";
  const troubled = [routing, ...around].some(
    (status) => status !== undefined && status !== "healthy" && status !== "no_signal",
  );
  return troubled ? "partial" : api;
}

interface MonitorOptions extends Pick<HealthParts, "traffic" | "isPublic" | "version"> {
  states: ProviderStates;
  budgets: ProviderBudgets;
  smoke: SmokeTests;
  jobs: JobRegistry;
  events: HealthEvents;
  clock: Clock;
  /** Returns the providers that requests can be routed to now. */
  routed(): HealthParts["routed"];
  /** Probes the database; undefined where Postgres is not in use. */
  probePostgres: (() => Promise<boolean>) | undefined;
  /** Probes the archive; undefined where there is none. */
  probeClickHouse?: (() => Promise<boolean>) | undefined;
  /**
   * Returns the share of the gateways' shared state that is available, from 0 to 1; absent where
   * there is none.
   */
  sharedUp?: (() => number) | undefined;
  onError(error: unknown, message: string): void;
}

/** The outcome of tests on demand. */
type TestedNow =
  | { ok: true; results: SmokeResult[] }
  | { ok: false; reason: "busy" | "unknown_provider" };

/** Does the periodic work of health, and provides the snapshot. */
export class HealthMonitor {
  private postgresUp: boolean | undefined;
  private clickHouseUp: boolean | undefined;
  private testing: Promise<void> | undefined;

  constructor(private readonly options: MonitorOptions) {}

  /** Returns the current snapshot, without asking a database or a provider. */
  snapshot(): HealthSnapshot {
    const { events, clock, routed, sharedUp, ...parts } = this.options;
    return healthSnapshot({
      ...parts,
      events: events.shown(),
      routed: routed(),
      postgresUp: this.postgresUp,
      clickHouseUp: this.clickHouseUp,
      sharedUp: sharedUp?.(),
      nowMs: clock.nowMs(),
    });
  }

  /** Returns the periods in which publicly shown providers were not healthy, newest first. */
  incidents(): Incident[] {
    return this.options.events
      .incidents()
      .filter(({ upstreamId }) => this.options.isPublic(upstreamId));
  }

  /** Returns whether a provider is shown publicly. */
  isPublic(providerId: string): boolean {
    return this.options.isPublic(providerId);
  }

  /** Returns what is known of every provider, for operators. */
  upstreams(): UpstreamReport[] {
    const { routed, ...parts } = this.options;
    return upstreamReports({ ...parts, routed: routed() });
  }

  /** Clears a provider's failures: its quarantine, its exclusion, its place behind the others. */
  clear(providerId: string): void {
    this.options.states.record(providerId, "cleared");
  }

  /** Returns the last smoke test of each provider, by any gateway. */
  smokeResults(): Promise<SmokeResult[]> {
    return this.options.smoke.stored();
  }

  /**
   * Tests one provider or all of them now; refused while tests are running. Rejects when a result
   * cannot be stored.
   */
  async testNow(providerId: string | undefined): Promise<TestedNow> {
    const { smoke, jobs } = this.options;
    if (this.testing !== undefined) return { ok: false, reason: "busy" };
    const ids = smoke.testable().filter((id) => providerId === undefined || id === providerId);
    if (ids.length === 0 && providerId !== undefined)
      return { ok: false, reason: "unknown_provider" };
    const run = smoke.run(ids);
    this.testing = run
      .catch(() => undefined)
      .finally(() => {
        this.testing = undefined;
      });
    await run;
    if (providerId === undefined) jobs.ran("smoke_tests", true);
    return {
      ok: true,
      results: (await smoke.stored()).filter((result) => ids.includes(result.providerId)),
    };
  }

  /**
   * Does what is due now: changes by passing time, the day's budgets, probes of the databases, and
   * tests, which continue in the background.
   */
  async check(): Promise<void> {
    const { states, budgets, jobs, probePostgres, probeClickHouse } = this.options;
    budgets.check();
    states.check();
    this.testWhatIsDue();
    [this.postgresUp, this.clickHouseUp] = await Promise.all([
      probePostgres?.(),
      probeClickHouse?.(),
    ]);
    jobs.ran("health_check", true);
  }

  /** Ends the tests in progress, and resolves as `idle` does. */
  stop(): Promise<void> {
    this.options.smoke.end();
    return this.idle();
  }

  /** Resolves when no test is running and every event was written or could not be. */
  async idle(): Promise<void> {
    await this.testing;
    await this.options.events.written();
  }

  private testWhatIsDue(): void {
    const { smoke, states, jobs, onError } = this.options;
    if (this.testing !== undefined) return;
    const [due, probed] = [smoke.due(), states.onProbation()];
    if (due.length + probed.length === 0) return;
    this.testing = this.test({ due, probed })
      .catch((error: unknown) => {
        jobs.ran("smoke_tests", false, "The last run failed.");
        onError(error, "a smoke test could not be run or kept");
      })
      .finally(() => {
        this.testing = undefined;
      });
  }

  private async test({
    due,
    probed,
  }: {
    due: readonly string[];
    probed: readonly string[];
  }): Promise<void> {
    const { smoke, jobs } = this.options;
    for (const id of probed) await smoke.probe(id);
    if (due.length === 0) return;
    await smoke.run(due);
    jobs.ran("smoke_tests", true);
  }
}

/** All that is known of a provider. Times are in milliseconds. */
export interface UpstreamReport {
  id: string;
  name: string;
  /** Whether requests can be routed to it with a platform credential. */
  routed: boolean;
  /** Every state that it is in, most severe first. */
  states: readonly RoutingState[];
  /** The quarantine that it is in or was in recently. */
  quarantine: { untilMs: number; lengthMs: number } | undefined;
  failuresInRow: number;
  lastSuccessMs: number | undefined;
  lastFailureMs: number | undefined;
  lastHour: TrafficSums | undefined;
  budget: Readonly<Budget> | undefined;
  smoke: SmokeResult | undefined;
}

/** The parts of the reports. */
interface UpstreamParts {
  traffic: Traffic;
  states: ProviderStates;
  smoke: SmokeTests;
  budgets: ProviderBudgets;
  routed: readonly RoutedProvider[];
}

/**
 * Returns a report of every provider that is routed to or of which anything is remembered, by id.
 */
function upstreamReports({
  traffic,
  states,
  smoke,
  budgets,
  routed,
}: UpstreamParts): UpstreamReport[] {
  const names = new Map(routed.map(({ id, name }) => [id, name]));
  const results = new Map(smoke.current().map((result) => [result.providerId, result]));
  const ids = [...new Set([...names.keys(), ...states.knownIds()])].sort();
  return ids.map((id) => {
    const health = states.healthOf(id);
    return {
      id,
      name: names.get(id) ?? id,
      routed: names.has(id),
      states: states.statesOf(id),
      quarantine: health?.quarantine,
      failuresInRow: health?.failuresInRow ?? 0,
      lastSuccessMs: health?.lastSuccessMs,
      lastFailureMs: health?.lastFailureMs || undefined,
      lastHour: traffic.ofProvider(id),
      budget: budgets.budgetOf(id),
      smoke: results.get(id),
    };
  });
}
