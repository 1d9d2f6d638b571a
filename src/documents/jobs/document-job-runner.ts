import type { UpstreamClient } from "../../inference/upstream/upstream-client.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { withinTime } from "../../platform/kernel/time/within-time.ts";
import { askParser, type DocumentCredentialOf, type ParserAnswer } from "./ask-parser.ts";
import type { DocumentJobStore, ParseFailure, TakenJob } from "./document-job-store.ts";

/**
 * The most jobs that run concurrently, in all and for one workspace, so that a large batch of one
 * leaves room for others.
 */
const runningMax = 32;
const runningOfWorkspaceMax = 8;

/** Milliseconds between requests to a provider that answers at once that it is not done. */
const askEveryMs = 1_000;

/** Milliseconds after which a job that its provider has not finished has failed. */
const jobMsMax = 30 * 60_000;

/** The dependencies of the runner. */
export interface DocumentJobRunnerOptions {
  jobs: DocumentJobStore;
  upstream: UpstreamClient;
  credentialOf: DocumentCredentialOf;
  clock: Clock;
  onError(error: unknown): void;
  askEveryMs?: number;
  runningMax?: number;
}

interface ActiveJob {
  id: string;
  workspaceId: string;
  running: boolean;
  /** Called when the job has ended here, and when waiting for it ends. */
  wake(): void;
  woken: Promise<void>;
}

/**
 * Runs document jobs, oldest first. A job that this process does not finish is continued by the
 * next one; its provider knows it by its id and does not start again.
 */
export class DocumentJobRunner {
  private readonly active = new Map<string, ActiveJob>();
  private readonly working = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private draining = false;

  constructor(private readonly options: DocumentJobRunnerOptions) {}

  /** Resumes what other processes have left. */
  async start(): Promise<void> {
    for (const { id, workspaceId } of await this.options.jobs.recover())
      this.enqueue(id, workspaceId);
  }

  /** Returns how many jobs of a workspace wait or run. */
  openCountOf(workspaceId: string): number {
    let count = 0;
    for (const job of this.active.values()) if (job.workspaceId === workspaceId) count += 1;
    return count;
  }

  /** Runs a stored job when its turn comes. Does nothing for one that is already active here. */
  enqueue(id: string, workspaceId: string): void {
    if (this.draining || this.active.has(id)) return;
    let wake = (): void => undefined;
    const woken = new Promise<void>((resolve) => (wake = resolve));
    this.active.set(id, { id, workspaceId, running: false, wake, woken });
    this.fill();
  }

  /**
   * Resolves when a job has ended or the time is over, and at once when the job is not active here.
   */
  async waitFor(id: string, ms: number): Promise<void> {
    const job = this.active.get(id);
    if (job !== undefined && ms > 0) await withinTime(ms, job.woken, undefined);
  }

  /** Starts no more jobs and answers waiting callers that their jobs are in progress. */
  drain(): void {
    this.draining = true;
    for (const job of this.active.values()) job.wake();
  }

  /** Aborts what is running; the next process resumes it. */
  async stop(): Promise<void> {
    this.drain();
    this.stopping.abort();
    await Promise.all(this.working);
  }

  private fill(): void {
    let running = 0;
    const byWorkspace = new Map<string, number>();
    for (const job of this.active.values()) {
      const ofWorkspace = byWorkspace.get(job.workspaceId) ?? 0;
      const hasRoom =
        running < (this.options.runningMax ?? runningMax) && ofWorkspace < runningOfWorkspaceMax;
      if (!job.running && !this.draining && hasRoom) this.begin(job);
      if (!job.running) continue;
      running += 1;
      byWorkspace.set(job.workspaceId, ofWorkspace + 1);
    }
  }

  private begin(job: ActiveJob): void {
    job.running = true;
    const work = this.work(job.id)
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.options.onError(error);
      })
      .finally(() => {
        this.working.delete(work);
        this.active.delete(job.id);
        this.options.jobs.release(job.id);
        job.wake();
        this.fill();
      });
    this.working.add(work);
  }

  private async work(id: string): Promise<void> {
    const { jobs, clock } = this.options;
    const taken = await jobs.take(id);
    if (taken === undefined) return;
    const { providerId, answer } = await this.answerTo(id, taken);
    if (answer.kind !== "running")
      await jobs.settle(id, { ...answer, providerId, endedAtMs: clock.nowMs() });
  }

  /** Asks the provider until there is an answer. Rejects when the process stops. */
  private async answerTo(
    jobId: string,
    { workspaceId, bodyText }: TakenJob,
  ): Promise<{ providerId: string | null; answer: ParserAnswer }> {
    const { upstream, credentialOf, clock } = this.options;
    const { signal } = this.stopping;
    const startedMs = clock.monotonicMs();
    for (;;) {
      const credential = credentialOf(workspaceId);
      if (credential === undefined) return { providerId: null, answer: failed(keyIsGone) };
      const askedMs = clock.monotonicMs();
      const answer = await askParser(upstream, { credential, jobId, bodyText, signal });
      if (answer.kind !== "running") return { providerId: credential.providerId, answer };
      if (clock.monotonicMs() - startedMs > jobMsMax)
        return { providerId: credential.providerId, answer: failed(tookTooLong) };
      await pause(
        (this.options.askEveryMs ?? askEveryMs) - (clock.monotonicMs() - askedMs),
        signal,
      );
    }
  }
}

const failed = (failure: ParseFailure): ParserAnswer => ({ kind: "failed", failure });

const ours = (code: ParseFailure["code"], message: string): ParseFailure => ({
  code,
  message,
  upstreamMessage: null,
  upstreamStatus: null,
  final: false,
});

const keyIsGone = ours(
  "byok_required",
  "The provider key of this document job is gone. Save one and retry.",
);
const tookTooLong = ours(
  "upstream_timeout",
  "The document provider has not finished in time. Retry with the same Idempotency-Key.",
);

/** Resolves after the time; rejects when the signal fires. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      },
      { once: true },
    );
  });
}
