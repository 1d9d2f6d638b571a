import { hourMs, isoOrNull, type Clock } from "../../platform/kernel/clock.ts";
import { healthThresholds } from "./thresholds.ts";

/** A job that the service runs by itself. */
interface JobDeclaration {
  /** The stable name, such as `retention`. */
  kind: string;
  /** The name for people. */
  label: string;
  /** Milliseconds between runs. */
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
  { kind: "consent_retention", label: "Deletion of expired codes and tokens", everyMs: hourMs },
  { kind: "document_retention", label: "Deletion of old document jobs", everyMs: hourMs },
  { kind: "file_retention", label: "Deletion of expired files", everyMs: hourMs / 60 },
  { kind: "payment_reconciliation", label: "Reconciliation of card payments", everyMs: hourMs / 6 },
  { kind: "budget_alerts", label: "Alerts of budgets", everyMs: hourMs / 60 },
  { kind: "meter_events", label: "Reports of use to Stripe", everyMs: hourMs / 60 },
  { kind: "smoke_tests", label: "Smoke tests", everyMs: 24 * hourMs },
] as const satisfies readonly JobDeclaration[];

/** The names of the jobs, and the possible statuses of one that has run. */
type JobKind = (typeof serviceJobs)[number]["kind"];
type JobState = "healthy" | "stale" | "failing";

/** A job that has run, in the contract's form. */
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

/** Keeps the reports of the service's own jobs, for the health snapshot. */
export class JobRegistry {
  private readonly lastRuns = new Map<JobKind, LastRun>();

  constructor(private readonly clock: Clock) {}

  /**
   * Records that a run has ended, and whether it succeeded. The detail is shown publicly, so it
   * must not contain host names or texts of a database.
   */
  ran(kind: JobKind, ok: boolean, detail?: string): void {
    this.lastRuns.set(kind, { atMs: this.clock.nowMs(), ok, detail: detail ?? null });
  }

  /** Runs a job and records its outcome; errors go to `onError`. */
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

  /** Returns the jobs that have run, in the order of the declaration. */
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
