import { hourMs, isoOrNull, type Clock } from "../../platform/kernel/clock.ts";
import { healthThresholds } from "./thresholds.ts";

/** A job that the service runs by itself. */
interface JobDeclaration {
  /** Stable name, such as `retention`. */
  kind: string;
  /** What it is called for people. */
  label: string;
  /** How often it is to run, in milliseconds. */
  everyMs: number;
}

/** The jobs of the service. */
const serviceJobs = [
  { kind: "hold_expiry", label: "Expiry of holds", everyMs: hourMs / 60 },
  { kind: "health_check", label: "Health check", everyMs: hourMs / 60 },
  { kind: "network_statistics", label: "Network statistics", everyMs: hourMs / 6 },
  { kind: "generation_retention", label: "Deletion of old generation records", everyMs: hourMs },
  { kind: "ledger_closing", label: "Closing of the ledger's months", everyMs: hourMs },
  { kind: "response_retention", label: "Deletion of old stored responses", everyMs: hourMs },
  { kind: "consent_retention", label: "Deletion of codes and tokens that ended", everyMs: hourMs },
  { kind: "document_retention", label: "Deletion of old document jobs", everyMs: hourMs },
  { kind: "payment_reconciliation", label: "Reconciliation of card payments", everyMs: hourMs / 6 },
  { kind: "budget_alerts", label: "Alerts of budgets", everyMs: hourMs / 60 },
  { kind: "smoke_tests", label: "Smoke tests", everyMs: 24 * hourMs },
] as const satisfies readonly JobDeclaration[];

/** Names of the jobs, and how a job that has run can be. */
type JobKind = (typeof serviceJobs)[number]["kind"];
type JobState = "healthy" | "stale" | "failing";

/** A job that has run, in the contract's shape. */
export interface JobReport {
  kind: JobKind;
  label: string;
  state: JobState;
  last_status: "succeeded" | "failed";
  last_run_at: string | null;
  age_hours: number;
  detail: string | null;
}

interface LastRun {
  atMs: number;
  ok: boolean;
  detail: string | null;
}

/** Keeps what the service's own jobs report, for the health snapshot. */
export class JobRegistry {
  private readonly clock: Clock;
  private readonly lastRuns = new Map<JobKind, LastRun>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * Records that a run has ended, well or not. The detail is shown publicly: no names of hosts, no
   * words of a database.
   */
  ran(kind: JobKind, ok: boolean, detail?: string): void {
    this.lastRuns.set(kind, { atMs: this.clock.nowMs(), ok, detail: detail ?? null });
  }

  /** Runs a job and reports it; what it throws goes to `onError`. */
  async run(
    kind: JobKind,
    work: () => Promise<void>,
    onError: (error: unknown) => void,
  ): Promise<void> {
    try {
      await work();
      this.ran(kind, true);
    } catch (error) {
      this.ran(kind, false, "The last run failed.");
      onError(error);
    }
  }

  /** The jobs that have run, in the order of the declaration. */
  reports(): JobReport[] {
    const nowMs = this.clock.nowMs();
    return serviceJobs.flatMap((job) => {
      const last = this.lastRuns.get(job.kind);
      return last === undefined ? [] : [reportOf(job, { last, nowMs })];
    });
  }
}

function reportOf(
  job: JobDeclaration & { kind: JobKind },
  { last, nowMs }: { last: LastRun; nowMs: number },
): JobReport {
  const { kind, label, everyMs } = job;
  const ageMs = Math.max(0, nowMs - last.atMs);
  const isStale = ageMs > healthThresholds.jobStalePeriods * everyMs;
  return {
    kind,
    label,
    state: !last.ok ? "failing" : isStale ? "stale" : "healthy",
    last_status: last.ok ? "succeeded" : "failed",
    last_run_at: isoOrNull(last.atMs),
    age_hours: Math.round((ageMs / hourMs) * 100) / 100,
    detail: last.detail,
  };
}
