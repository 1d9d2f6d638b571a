import type { Clock } from "../../platform/lib/clock.ts";
import type { HealthEvents, Incident } from "./health-events.ts";
import { healthSnapshot, type HealthParts, type HealthSnapshot } from "./health-snapshot.ts";
import type { JobRegistry } from "./job-registry.ts";
import type { ProviderBudgets } from "./provider-budgets.ts";
import type { ProviderStates } from "./provider-states.ts";
import type { SmokeResult } from "./smoke-store.ts";
import type { SmokeTests } from "./smoke-tests.ts";
import { upstreamReports, type UpstreamReport } from "./upstream-report.ts";

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
      sharedUp: isSharedUp?.(),
      nowMs: clock.nowMs(),
    });
  }

  /** Times in which providers that are shown to everybody were not healthy, the newest first. */
  incidents(): Incident[] {
    return this.options.events
      .incidents()
      .filter(({ upstreamId }) => this.options.isPublic(upstreamId));
  }

  /** Whether a provider is shown to everybody. */
  isPublic(providerId: string): boolean {
    return this.options.isPublic(providerId);
  }

  /** What is known of every provider, for operators. */
  upstreams(): UpstreamReport[] {
    const { routed, ...parts } = this.options;
    return upstreamReports({ ...parts, routed: routed() });
  }

  /** Forgets what failed at a provider: its quarantine, its exclusion, its place behind the others. */
  clear(providerId: string): void {
    this.options.states.record(providerId, "cleared");
  }

  /** The last smoke test of each provider, whichever gateway made it. */
  smokeResults(): Promise<SmokeResult[]> {
    return this.options.smoke.stored();
  }

  /** Tests one provider or all of them now; refused while tests are under way. Rejects when a result cannot be kept. */
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

  /** What is due now: changes by passing time, the day's budgets, the database, tests. Tests go on in the background. */
  async check(): Promise<void> {
    const { states, budgets, jobs, probePostgres } = this.options;
    budgets.check();
    states.check();
    this.testWhatIsDue();
    if (probePostgres !== undefined) this.postgresUp = await probePostgres();
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
