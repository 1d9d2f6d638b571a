import type { Clock } from "../../platform/kernel/clock.ts";
import {
  type AttemptRecord,
  type GenerationRecord,
  isOutage,
  outcomeOf,
} from "../generation-record.ts";
import type { RoutedProvider } from "./components.ts";
import type { HealthEvents, Incident } from "./health-events.ts";
import { type HealthParts, type HealthSnapshot, healthSnapshot } from "./health-snapshot.ts";
import type { JobRegistry } from "./job-registry.ts";
import type { Budget, ProviderBudgets } from "./provider-budgets.ts";
import type { ProviderStates, RoutingState } from "./provider-health.ts";
import type { SmokeResult, SmokeTests } from "./smoke-tests.ts";
import type { Traffic, TrafficSums } from "./traffic.ts";

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
export type TestedNow =
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
