import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { setTimeout as delay } from "node:timers/promises";
import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { SharedStateAwayError } from "../../platform/shared-state/shared-state-error.ts";
import { StorageUnavailableError } from "../../platform/storage/storage-error.ts";
import type { FrameSource } from "../../platform/kernel/frame-source.ts";
import { succeedsWithin } from "../../platform/kernel/time/within-time.ts";
import type { RunBackground, StopReason, JobStore, StoredJob } from "./job-store.ts";
import { ActiveJob } from "./active-job.ts";
import { framesOf, type ResponseEvent, type NewResponse } from "./stored-response.ts";
import type { EventLog } from "./event-log.ts";
import type { ResponseStore } from "./response-store.ts";

/**
 * The most jobs that run concurrently. Each is a stream without a waiting client; more would take
 * room from those that have one.
 */
const runningMax = 32;

/**
 * Milliseconds for which events are collected before they are stored; followers in this process do
 * not wait for it.
 */
const storeEveryMs = 250;

/** Milliseconds that a stopped run may take to settle before its job is ended without it. */
const stopPatienceMs = 2_000;

/**
 * Milliseconds between attempts of a write that decides a job's outcome, and the most attempts of one
 * that the database refuses.
 */
const retry = { everyMs: 1_000, triesMax: 60 };

/**
 * The longest pause between runs of a job that find something away, in such times, and milliseconds
 * since its creation after which it is not run again: what is away for one request alone, such as a
 * read that takes longer than the database allows, would have it run for ever.
 */
const slowestRetry = 32;
const runsForMs = dayMs;

/**
 * Milliseconds after which a gateway looks again at what another has done: ended a job that runs
 * here, or stored events of one that runs there.
 */
const lookEveryMs = 1_000;

/**
 * The numbers that the end of a job, which another gateway writes, leaves to the events of the gateway
 * that runs it: they come until that has seen the end.
 */
const roomForEvents = 10_000;

const keyGone = (): GatewayError =>
  new GatewayError(
    "invalid_api_key",
    "The API key of this response was revoked, disabled or has expired.",
  );

/** Returns whether a failure says that the database or the shared state is away. */
const isOutage = (error: unknown): boolean =>
  error instanceof SharedStateAwayError ||
  error instanceof StorageUnavailableError ||
  (error instanceof GatewayError && error.metadata["reason"] === "shared_state_away");

/** The dependencies of the runner. */
export interface BackgroundRunnerOptions {
  responses: ResponseStore;
  jobs: JobStore;
  run: RunBackground;
  /** Returns the key that asked for a job, if it may still be used. */
  callerOf(keyId: string): LlmKeyCaller | undefined;
  clock: Clock;
  onError(error: unknown): void;
  runningMax?: number;
  stopPatienceMs?: number;
  retryEveryMs?: number;
  lookEveryMs?: number;
}

/**
 * Runs background responses, oldest first. A job is durable before its client learns of it, and is
 * started again by the next process when this one ends before the job does.
 */
export class BackgroundRunner {
  private readonly active = new Map<string, ActiveJob>();
  private readonly waiting: ActiveJob[] = [];
  private readonly running = new Map<ActiveJob, Promise<void>>();
  private readonly draining = new AbortController();
  private stopping = false;

  constructor(private readonly options: BackgroundRunnerOptions) {}

  /**
   * Resumes what other processes have left: queued jobs, and those in progress, from their
   * beginning.
   */
  async start(): Promise<void> {
    const isActive = (id: string): boolean => this.active.has(id);
    for (const id of await this.options.jobs.recover(isActive)) if (!isActive(id)) this.enqueue(id);
  }

  /** Stores a queued response and runs it when its turn comes. Resolves when it is durable. */
  async submit(response: NewResponse): Promise<void> {
    await this.options.responses.insert(response);
    this.enqueue(response.id);
  }

  /**
   * Returns the events of a background response after a sequence number (-1: all), and then new
   * ones as they come.
   */
  follow(id: string, startingAfter: number): FrameSource {
    const { jobs, onError } = this.options;
    const log = this.active.get(id)?.log;
    const followed = { id, jobs, onError, log, ending: this.draining.signal };
    return new EventFollower({ ...followed, lookEveryMs: this.lookEveryMs }, startingAfter);
  }

  /**
   * Stops a job and resolves when its response has ended. Does nothing for one that is not active.
   */
  async cancel(id: string): Promise<void> {
    const job = this.active.get(id) ?? (await this.elsewhere(id));
    const place = this.waiting.indexOf(job);
    if (place >= 0) this.waiting.splice(place, 1);
    await this.stopJob(job, "cancel");
  }

  /** Returns a job that does not run here, as far as it is needed to end it. */
  private async elsewhere(id: string): Promise<ActiveJob> {
    const job = new ActiveJob(id);
    const last = await this.options.jobs.lastSequence(id);
    if (last >= 0) job.log.startAfter(last + roomForEvents);
    return job;
  }

  /**
   * Starts no more jobs. Waiting ones stay queued for the next process, and their followers are
   * released.
   */
  drain(): void {
    this.draining.abort();
    for (const job of this.waiting.splice(0)) this.forget(job);
  }

  /** Resolves when no job is running. */
  async untilIdle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running.values());
  }

  /** Stops what is running; incomplete jobs return to the queue. */
  async stop(): Promise<void> {
    this.drain();
    this.stopping = true;
    await Promise.all(
      [...this.running.keys()].map((job) =>
        this.stopJob(job, "shutdown").catch(this.options.onError),
      ),
    );
  }

  private enqueue(id: string): void {
    if (this.isDraining) return;
    const job = new ActiveJob(id);
    this.active.set(id, job);
    this.waiting.push(job);
    this.fill();
  }

  private fill(): void {
    while (!this.isDraining && this.running.size < (this.options.runningMax ?? runningMax)) {
      const job = this.waiting.shift();
      if (job === undefined) return;
      const work = this.work(job)
        .catch(this.options.onError)
        .finally(() => {
          this.running.delete(job);
          this.forget(job);
          this.options.jobs.release(job.id);
          this.fill();
        });
      this.running.set(job, work);
    }
  }

  private forget(job: ActiveJob): void {
    if (this.active.get(job.id) === job) this.active.delete(job.id);
    job.log.close();
  }

  private async work(job: ActiveJob): Promise<void> {
    this.storeWhileRunning(job);
    let isOurs = true;
    const looking = this.options.jobs.isShared
      ? setInterval(() => void this.stopWhereEnded(job), this.lookEveryMs)
      : undefined;
    const failure = await this.attempt(job).then(
      (wasTaken) => {
        isOurs = wasTaken;
      },
      (error: unknown) => error ?? new Error("the run was rejected"),
    );
    clearInterval(looking);
    job.markRunEnded();
    if (isOurs || job.signal.aborted) await this.conclude(job, failure);
  }

  /**
   * Runs a job. Rejects with its failure; returns whether the job could be taken. A run that finds
   * the database or the shared state away before anything came returns to the queue.
   */
  private async attempt(job: ActiveJob): Promise<boolean> {
    for (let returns = 0; ; returns += 1) {
      const stored = await this.taken(job);
      if (stored === undefined) return false;
      if (job.signal.aborted) return true;
      try {
        await this.runOnce(job, stored);
        return true;
      } catch (error) {
        const isOld = this.options.clock.nowMs() - stored.createdAtMs > runsForMs;
        const hasBegun = job.log.nextSequenceNumber > 0;
        if (!isOutage(error) || hasBegun || isOld || job.signal.aborted) throw error;
        this.options.onError(error);
        if (!(await this.hasReturned(job))) return false;
        await this.pause(job, Math.min(2 ** returns, slowestRetry));
        if (this.isDraining) return false;
      }
    }
  }

  private runOnce(job: ActiveJob, stored: StoredJob): Promise<void> {
    const { run, callerOf, jobs } = this.options;
    const { keyId, ...request } = stored;
    const caller = callerOf(keyId);
    if (caller === undefined) throw keyGone();
    const beforeActing = (): Promise<void> => jobs.markActed(job.id);
    return run({ ...request, responseId: job.id, caller, beforeActing }, job, job.signal);
  }

  /** Takes a job: it has not begun, so that an outage fails nothing of it. */
  private taken(job: ActiveJob): Promise<StoredJob | undefined> {
    let isAgain = false;
    return this.patiently(job, () => {
      const taking = this.options.jobs.take(job.id, { isAgain });
      isAgain = true;
      return taking;
    });
  }

  /**
   * Returns a job to the queue, for this gateway, which its followers read from. Resolves with false
   * where it is left to the next process.
   */
  private async hasReturned(job: ActiveJob): Promise<boolean> {
    const returned = await this.patiently(job, async () => {
      await this.options.jobs.requeue(job.id, { keeps: true });
      return true;
    });
    return returned === true;
  }

  /**
   * Retries work on a job that waits for as long as the database or the shared state is away;
   * undefined where the job is stopped or left to the next process meanwhile.
   */
  private async patiently<Result>(
    job: ActiveJob,
    work: () => Promise<Result>,
  ): Promise<Result | undefined> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        this.options.onError(error);
        await this.pause(job);
        if (this.isDraining || job.signal.aborted) return undefined;
      }
    }
  }

  /** Stops a job that another gateway has ended: what its provider still makes would be paid for. */
  private async stopWhereEnded(job: ActiveJob): Promise<void> {
    const isOpen = await this.options.jobs.isUnderWay(job.id).catch(() => true);
    if (!isOpen && job.conclusion === undefined) job.stop("cancel");
  }

  /** Stores events in batches while they come. */
  private storeWhileRunning(job: ActiveJob): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let write: Promise<void> | undefined;
    const store = async (): Promise<void> => {
      const events = job.log.beforeEnd();
      // What cannot be stored now stays in memory, and is tried again with the next batch.
      await this.options.jobs
        .append(job.id, events)
        .then(() => job.log.markStored(events.length), this.options.onError);
      timer = undefined;
    };
    job.onEvents = () => {
      timer ??= setTimeout(() => {
        write = store();
      }, storeEveryMs);
    };
    job.stopStoring = async () => {
      clearTimeout(timer);
      job.onEvents = () => undefined;
      await write;
    };
  }

  private async stopJob(job: ActiveJob, reason: StopReason): Promise<void> {
    const isRunning = this.running.has(job);
    job.stop(reason);
    if (isRunning)
      await succeedsWithin(this.options.stopPatienceMs ?? stopPatienceMs, job.runEnded);
    await this.conclude(job, undefined);
    this.forget(job);
  }

  /** Writes how a job ended, once. */
  private conclude(job: ActiveJob, failure: unknown): Promise<void> {
    job.conclusion ??= this.writeEnd(job, failure);
    return job.conclusion;
  }

  private async writeEnd(job: ActiveJob, failure: unknown): Promise<void> {
    const { jobs, clock } = this.options;
    await job.stopStoring();
    const stored = await this.insist(() => jobs.record(job.id));
    if (stored === undefined) return;
    const end = job.endOf(failure, stored);
    if (end === undefined) {
      await this.insist(() => jobs.requeue(job.id));
      return;
    }
    job.tellEnd(end);
    await this.insist(() =>
      jobs.settle(job.id, { ...end, completedAtMs: clock.nowMs(), events: job.log.all() }),
    );
    job.log.markEndStored();
  }

  /** Retries a write that has to succeed eventually, however long the database is away. */
  private async insist<Result>(write: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await write();
      } catch (error) {
        if (this.stopping || (tries >= retry.triesMax && !isOutage(error))) throw error;
        this.options.onError(error);
        await delay(this.retryEveryMs);
      }
    }
  }

  private get isDraining(): boolean {
    return this.draining.signal.aborted;
  }

  private get lookEveryMs(): number {
    return this.options.lookEveryMs ?? lookEveryMs;
  }

  private get retryEveryMs(): number {
    return this.options.retryEveryMs ?? retry.everyMs;
  }

  /** Waits, unless the job is stopped or no more jobs are to be started. */
  private async pause(job: ActiveJob, times = 1): Promise<void> {
    const signal = AbortSignal.any([job.signal, this.draining.signal]);
    await delay(this.retryEveryMs * times, undefined, { signal }).catch(() => undefined);
  }
}

/** The response that a follower reads. */
interface FollowedResponse {
  id: string;
  /**
   * The job's log while this process runs it; undefined for a response that only the database
   * knows.
   */
  log: EventLog | undefined;
  jobs: JobStore;
  /** Aborted once this gateway ends, which releases those who follow a job of another one. */
  ending: AbortSignal;
  lookEveryMs: number;
  onError(error: unknown): void;
}

/**
 * Replays the events of a background response from a position and continues with new ones, until it
 * ends, at any gateway that runs it.
 */
class EventFollower implements FrameSource {
  private gone = false;
  private wake: () => void = () => undefined;

  /** Follows from the event after `position`; -1 precedes the first one. */
  constructor(
    private readonly response: FollowedResponse,
    private position: number,
  ) {}

  async next(): Promise<string | undefined> {
    try {
      const events = await this.nextEvents();
      const last = events?.at(-1);
      if (events === undefined || last === undefined) return undefined;
      this.position = last.sequenceNumber;
      return framesOf(events);
    } catch (error) {
      this.response.onError(error);
      if (this.gone) return undefined;
      this.gone = true;
      return this.errorFrame();
    }
  }

  cancel(): void {
    this.gone = true;
    this.wake();
  }

  private async nextEvents(): Promise<readonly ResponseEvent[] | undefined> {
    const { log, ending } = this.response;
    while (!this.gone && log !== undefined) {
      const { promise: changed, resolve } = Promise.withResolvers<void>();
      this.wake = resolve;
      // Registered before anything is read, so that no event in between is missed.
      log.onChange(resolve);
      const { ended } = log;
      const events = await this.read();
      if (events.length > 0 || ended) {
        log.offChange(resolve);
        // One that did not end goes on at another gateway, or at the next process.
        if (events.length > 0 || log.hasTerminal || ending.aborted) return events;
        break;
      }
      await changed;
      log.offChange(resolve);
    }
    return this.eventsElsewhere();
  }

  /** Returns the next events that another gateway stores; none once the response has ended. */
  private async eventsElsewhere(): Promise<readonly ResponseEvent[] | undefined> {
    const { jobs, id, ending, lookEveryMs: everyMs } = this.response;
    while (!this.gone) {
      // Asked before the events are read, so that the last ones are not missed.
      const isOpen = await jobs.isUnderWay(id);
      const events = await jobs.eventsAfter(id, this.position);
      if (events.length > 0 || !isOpen || ending.aborted) return events;
      const { promise: looks, resolve } = Promise.withResolvers<void>();
      this.wake = resolve;
      const timer = setTimeout(resolve, everyMs);
      await looks;
      clearTimeout(timer);
    }
    return undefined;
  }

  private async read(): Promise<readonly ResponseEvent[]> {
    const { log, jobs, id } = this.response;
    return log?.after(this.position) ?? jobs.eventsAfter(id, this.position);
  }

  private errorFrame(): string {
    const data = JSON.stringify({
      type: "error",
      code: "server_error",
      param: null,
      sequence_number: this.position + 1,
      message: "The stored events cannot be read now. Ask again with starting_after.",
    });
    return framesOf([{ sequenceNumber: this.position + 1, name: "error", data }]);
  }
}
