import type { Clock } from "../../platform/kernel/clock.ts";
import {
  isOutage,
  outcomeOf,
  type AttemptRecord,
  type GenerationRecord,
} from "../generation-record.ts";
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
import type { Budget, ProviderBudgets, Traffic, TrafficSums } from "./traffic.ts";
import type { ProviderStates, RoutingState } from "./provider-health.ts";
import type { SmokeResult, SmokeTests } from "./smoke-tests.ts";

/** What the snapshot is made of; all of it in memory, so that no outage keeps it from clients. */
interface HealthParts {
  traffic: Traffic;
  states: ProviderStates;
  smoke: SmokeTests;
  jobs: JobRegistry;
  events: readonly HealthEvent[];
  /** Providers that requests can be routed to. */
  routed: readonly RoutedProvider[];
  isPublic(providerId: string): boolean;
  /** Whether Postgres answered when it was asked last; undefined where it is not in use. */
  postgresUp: boolean | undefined;
  /** Whether the archive answered when it was asked last; undefined where there is none. */
  clickHouseUp?: boolean | undefined;
  /** Whether the server answers that gateways share (Valkey); undefined where they share none. */
  sharedUp?: boolean | undefined;
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

/** Without the server that gateways share, none of them knows what it may spend. */
const withoutShared = (traffic: Traffic): Component<ApiData> => ({
  ...apiComponent(traffic.ofService()),
  status: "down",
  description: texts.down,
  note: "The server of shared state (Valkey) does not answer; inference is refused until it does.",
});

/** The snapshot of a moment. */
function healthSnapshot(parts: HealthParts): HealthSnapshot {
  const { traffic, states, smoke, jobs, nowMs } = parts;
  const statesOf = (providerId: string) => states.statesOf(providerId);
  const components: HealthSnapshot["components"] = {
    api: parts.sharedUp === false ? withoutShared(traffic) : apiComponent(traffic.ofService()),
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
 * The status of the whole. What requests meet comes first; of what is around them, trouble makes
 * the whole `partial` and no worse. Undefined means that a component does not apply.
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
  /** Providers that requests can be routed to now. */
  routed(): HealthParts["routed"];
  /** Asks the database whether it answers; undefined where Postgres is not in use. */
  probePostgres: (() => Promise<boolean>) | undefined;
  /** Asks the archive whether it answers; undefined where there is none. */
  probeClickHouse?: (() => Promise<boolean>) | undefined;
  /** Whether the server answers that gateways share; absent where they share none. */
  isSharedUp?: (() => boolean) | undefined;
  onError(error: unknown, message: string): void;
}

/** What became of tests that were asked for. */
type TestedNow =
  | { ok: true; results: SmokeResult[] }
  | { ok: false; reason: "busy" | "unknown_provider" };

/** Looks after everything about health that no request brings along, and tells the snapshot. */
export class HealthMonitor {
  private readonly options: MonitorOptions;
  private postgresUp: boolean | undefined;
  private clickHouseUp: boolean | undefined;
  private testing: Promise<void> | undefined;

  constructor(options: MonitorOptions) {
    this.options = options;
  }

  /** The snapshot of this moment; asks neither database nor provider. */
  snapshot(): HealthSnapshot {
    const { events, clock, routed, isSharedUp, ...parts } = this.options;
    return healthSnapshot({
      ...parts,
      events: events.shown(),
      routed: routed(),
      postgresUp: this.postgresUp,
      clickHouseUp: this.clickHouseUp,
      sharedUp: isSharedUp?.(),
      nowMs: clock.nowMs(),
    });
  }

  /** Times in which publicly shown providers were not healthy, the newest first. */
  incidents(): Incident[] {
    return this.options.events
      .incidents()
      .filter(({ upstreamId }) => this.options.isPublic(upstreamId));
  }

  /** Whether a provider is shown publicly. */
  isPublic(providerId: string): boolean {
    return this.options.isPublic(providerId);
  }

  /** What is known of every provider, for operators. */
  upstreams(): UpstreamReport[] {
    const { routed, ...parts } = this.options;
    return upstreamReports({ ...parts, routed: routed() });
  }

  /**
   * Forgets what failed at a provider: its quarantine, its exclusion, its place behind the others.
   */
  clear(providerId: string): void {
    this.options.states.record(providerId, "cleared");
  }

  /** The last smoke test of each provider, whichever gateway made it. */
  smokeResults(): Promise<SmokeResult[]> {
    return this.options.smoke.stored();
  }

  /**
   * Tests one provider or all of them now; refused while tests are under way. Rejects when a result
   * cannot be kept.
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
   * What is due now: changes by passing time, the day's budgets, the database, tests. Tests go on
   * in the background.
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

  /** Gives up the tests that are under way, and resolves as `idle` does. */
  stop(): Promise<void> {
    this.options.smoke.end();
    return this.idle();
  }

  /** Resolves when no test is under way and every event is written or was given up. */
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

/** Notes for the health snapshot what inference reports; constant work, and never a wait. */
export class HealthRecorder {
  private readonly options: {
    traffic: Traffic;
    states: ProviderStates;
    budgets: ProviderBudgets;
  };

  constructor(options: HealthRecorder["options"]) {
    this.options = options;
  }

  /** A try has ended; one with a caller's own key says nothing of the service. */
  attemptEnded(attempt: AttemptRecord): void {
    if (attempt.credentialSource !== undefined) return;
    this.options.traffic.attempted(attempt);
    const outcome = outcomeOf(attempt);
    if (outcome !== "neutral") this.options.states.record(attempt.provider, outcome);
  }

  /** A request was answered, whole or in part, and settled. */
  settled(record: GenerationRecord): void {
    this.options.traffic.settled(record);
    this.options.budgets.spend(record.provider, record.costNanoUsd);
  }

  /** A request was not answered; `ownFault` where the gateway itself was the reason. */
  failed({ attempts, ownFault }: { attempts: readonly AttemptRecord[]; ownFault: boolean }): void {
    if (!attempts.every(({ credentialSource }) => credentialSource === undefined)) return;
    this.options.traffic.failed({ outage: ownFault || attempts.some(isOutage) });
  }
}

/** Everything that is known of one provider. Times in milliseconds. */
export interface UpstreamReport {
  id: string;
  name: string;
  /** Whether requests can be routed to it with a credential of the platform. */
  routed: boolean;
  /** Every state that it is in, the gravest first. */
  states: readonly RoutingState[];
  /** The quarantine that it is in or was in lately. */
  quarantine: { untilMs: number; lengthMs: number } | undefined;
  failuresInRow: number;
  lastSuccessMs: number | undefined;
  lastFailureMs: number | undefined;
  lastHour: TrafficSums | undefined;
  budget: Readonly<Budget> | undefined;
  smoke: SmokeResult | undefined;
}

/** What the reports are made of. */
interface UpstreamParts {
  traffic: Traffic;
  states: ProviderStates;
  smoke: SmokeTests;
  budgets: ProviderBudgets;
  routed: readonly RoutedProvider[];
}

/** Of every provider that is routed to or of which anything is remembered, by its id. */
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
