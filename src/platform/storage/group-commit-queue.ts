import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../kernel/clock.ts";
import { LogLimit } from "../kernel/log-limit.ts";
import { withinTime } from "../kernel/time/within-time.ts";
import type {
  CommitOptions,
  CommitQueue,
  CommitUnit,
  PackedUnit,
  UnitPacker,
} from "./commit-queue.ts";
import { isOverdrawn, isUniqueViolation, StorageUnavailableError } from "./storage-error.ts";
import type { StorageLogger } from "./storage.ts";

/** A refused unit of a batch, by its index in the batch; nothing of it was written. */
export interface UnitFailure {
  index: number;
  error: Error;
}

/** Writes batches. One batch is in flight at a time. */
export interface BatchWriter {
  /**
   * Returns undefined when a batch can be written now, which then happens in the same turn.
   * Otherwise resolves when it is worth trying again.
   */
  whenReady(): Promise<void> | undefined;
  /**
   * Writes a batch. Resolves once the outcome of every unit is known: durable, or among the
   * failures.
   */
  write(units: readonly PackedUnit[]): Promise<readonly UnitFailure[]>;
  /**
   * Makes a test write that leaves nothing behind, on the path of batches. Rejects where a batch
   * would be refused.
   */
  probe(): Promise<void>;
}

/** Options of writing units: the packer, and the most units and milliseconds that may wait. */
export interface GroupCommitOptions {
  pack: UnitPacker;
  writer: BatchWriter;
  clock: Clock;
  /** Milliseconds that a unit may wait to be sent before it is refused. */
  maxWaitMs?: number;
  maxBatchUnits?: number;
  /** The most waiting units; beyond it new ones are refused at once. */
  maxPendingUnits?: number;
  /**
   * Milliseconds of waiting of the oldest unit, or of a test write, from which the queue counts as
   * stalled; absent means `maxWaitMs`.
   */
  stalledAfterMs?: number;
  /** Milliseconds before a batch that the database could not take is sent again. */
  retryMs?: number;
  logger?: StorageLogger;
}

interface Entry {
  unit: PackedUnit;
  sequence: number;
  acceptedAtMs: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

interface FlushWaiter {
  lastSequence: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

const noOptions: CommitOptions = {};
/** Resolves after everything that this turn of the event loop has read was processed. */
const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Milliseconds that units are held back for others that may follow; a turn that brings none ends
 * the wait.
 */
const gatherMs = 1;

/**
 * Milliseconds that the result of a test write is valid and that one is awaited. Until a write
 * counts as stalled, it is only a slow disk.
 */
const probeHoldsMs = 1_000;
const probeTimeoutMs = 2_000;

type TestWrite = { atMs: number; ended: boolean; succeeded: Promise<boolean> };

/**
 * Natural group commit: while one batch is being written, the units that arrive form the next. An
 * idle queue writes at the end of the current turn of the event loop or, where other requests are
 * in progress, of the first turn that brings no more units; at once where the caller knows that no
 * other request is in progress. So a busy thread writes few large batches, and a lone unit waits
 * for no timer and no turn. What the database could not take is sent again until
 * its time is over. Time in which this process itself was suspended does not count.
 */
export class GroupCommitQueue implements CommitQueue {
  readonly #pack: UnitPacker;
  readonly #writer: BatchWriter;
  readonly #clock: Clock;
  readonly #maxWaitMs: number;
  readonly #maxBatchUnits: number;
  readonly #maxPendingUnits: number;
  readonly #stalledAfterMs: number;
  readonly #retryMs: number;
  readonly #gate: CommitGate;
  #waiting: Entry[] = [];
  #inFlight: Entry[] = [];
  #lastSequence = 0;
  #flushWaiters: FlushWaiter[] = [];
  #expiryTimer: ReturnType<typeof setTimeout> | undefined;
  #draining = false;
  #lastProbe: TestWrite | undefined;
  #closed = false;
  /**
   * The reason why no unit in flight will be settled soon; undefined where the database answers.
   */
  #silence: StorageUnavailableError | undefined;
  /** Whether the last unit may be followed by more. */
  #moreMayFollow = false;

  constructor(options: GroupCommitOptions) {
    this.#pack = options.pack;
    this.#writer = options.writer;
    this.#clock = options.clock;
    this.#maxWaitMs = options.maxWaitMs ?? 5_000;
    this.#maxBatchUnits = options.maxBatchUnits ?? 1_024;
    this.#maxPendingUnits = options.maxPendingUnits ?? 100_000;
    this.#stalledAfterMs = options.stalledAfterMs ?? this.#maxWaitMs;
    this.#retryMs = options.retryMs ?? 100;
    this.#gate = new CommitGate(options);
  }

  get pendingCount(): number {
    return this.#inFlight.length + this.#waiting.length;
  }

  get rejectedCount(): number {
    return this.#gate.rejectedCount;
  }

  get stalled(): boolean {
    if (this.#gate.isClosed) return true;
    const oldest = this.#inFlight[0] ?? this.#waiting[0];
    const probedAtMs = this.#lastProbe?.ended === false ? this.#lastProbe.atMs : Infinity;
    return (
      this.#clock.livedMs() - Math.min(oldest?.acceptedAtMs ?? Infinity, probedAtMs) >
      this.#stalledAfterMs
    );
  }

  admits(): boolean {
    return !this.stalled && this.#gate.admits();
  }

  /** Returns whether the database takes writes, by a test write that is at most a second old. */
  async takesWrites(): Promise<boolean> {
    if (this.stalled) return false;
    const nowMs = this.#clock.livedMs();
    if (
      this.#lastProbe === undefined ||
      (this.#lastProbe.ended && nowMs - this.#lastProbe.atMs >= probeHoldsMs)
    ) {
      this.#lastProbe = this.#testWrite(nowMs);
    }
    const outcome = await withinTime<boolean, undefined>(
      probeTimeoutMs,
      this.#lastProbe.succeeded,
      undefined,
    );
    return outcome ?? !this.stalled;
  }

  /**
   * Suspends the queue because the database does not answer: nothing is admitted, and no flush
   * waits, until a test write succeeds or a unit in flight is settled.
   */
  suspend(cause: string): void {
    if (this.#closed) return;
    this.#gate.close(cause);
    const silence = new StorageUnavailableError(cause);
    this.#silence = silence;
    for (const { reject } of this.#flushWaiters.splice(0)) reject(silence);
    if (!this.#draining) void this.#drain();
  }

  commit(unit: CommitUnit, { moreMayFollow }: CommitOptions = noOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new StorageUnavailableError("the storage is closed");
      if (this.pendingCount >= this.#maxPendingUnits)
        throw new StorageUnavailableError("too many commits are waiting");
      const acceptedAtMs = this.#clock.livedMs();
      this.#waiting.push({
        unit: this.#pack(unit),
        sequence: ++this.#lastSequence,
        acceptedAtMs,
        resolve,
        reject,
      });
      this.#moreMayFollow = moreMayFollow === true;
      if (this.#expiryTimer === undefined) this.#watchExpiry();
      if (!this.#draining) void this.#drain(moreMayFollow === false);
    });
  }

  flush(): Promise<void> {
    if (this.pendingCount === 0) return Promise.resolve();
    return this.#silence === undefined ? this.#untilSettled() : Promise.reject(this.#silence);
  }

  #untilSettled(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#flushWaiters.push({ lastSequence: this.#lastSequence, resolve, reject });
    return promise;
  }

  /** Refuses new units and resolves when every accepted one is settled. */
  close(): Promise<void> {
    this.#closed = true;
    return this.pendingCount === 0 ? Promise.resolve() : this.#untilSettled();
  }

  /**
   * Sends what waits. While the gate is closed and nothing waits, test writes find out when it can
   * be opened. A lone unit is sent at once.
   */
  async #drain(isLone = false): Promise<void> {
    this.#draining = true;
    if (!isLone) await this.#gather();
    while (this.#waiting.length > 0 || (this.#gate.isClosed && !this.#closed)) {
      const ready = this.#writer.whenReady();
      if (ready) {
        await ready;
        continue;
      }
      if (this.#gate.isClosed)
        await delay(this.#retryMs, undefined, { ref: this.#waiting.length > 0 });
      if (this.#waiting.length > 0) await this.#writeBatch();
      else await this.#probe().catch(() => undefined);
      if (this.#waiting.length > 0 || this.#gate.isClosed) await this.#gather();
    }
    this.#draining = false;
  }

  #testWrite(atMs: number): TestWrite {
    const test: TestWrite = { atMs, ended: false, succeeded: Promise.resolve(false) };
    test.succeeded = this.#probe()
      .then(
        () => true,
        () => false,
      )
      .finally(() => (test.ended = true));
    return test;
  }

  async #probe(): Promise<void> {
    try {
      await this.#writer.probe();
      this.#silence = undefined;
      this.#gate.probed();
    } catch (error) {
      if (!this.#closed) this.#gate.close(messageOf(error));
      if (!this.#draining) void this.#drain();
      throw error;
    }
  }

  async #gather(): Promise<void> {
    await endOfTurn();
    for (let seen = 0; seen < this.#waiting.length && this.#mayGrow(); await endOfTurn())
      seen = this.#waiting.length;
  }

  #mayGrow(): boolean {
    const [oldest] = this.#waiting;
    return (
      this.#moreMayFollow &&
      oldest !== undefined &&
      this.#waiting.length < this.#maxBatchUnits &&
      this.#clock.livedMs() - oldest.acceptedAtMs < gatherMs
    );
  }

  #takeBatch(): Entry[] {
    const taken = this.#waiting;
    if (taken.length <= this.#maxBatchUnits) {
      this.#waiting = [];
      return taken;
    }
    return taken.splice(0, this.#maxBatchUnits);
  }

  #writeBatch(): Promise<void> {
    const batch = this.#takeBatch();
    this.#inFlight = batch;
    return this.#writer.write(batch.map(unitOf)).then(
      (failures) => this.#settle(batch, failures),
      (thrown: unknown) => {
        const error = thrown instanceof Error ? thrown : new Error(messageOf(thrown));
        this.#settle(
          batch,
          batch.map((_, index) => ({ index, error })),
        );
      },
    );
  }

  #settle(batch: Entry[], failures: readonly UnitFailure[]): void {
    if (failures.length === 0) return this.#settled(batch);
    const again: Entry[] = [];
    for (const { index, error } of failures) {
      const entry = batch[index];
      if (entry === undefined) continue;
      if (error instanceof StorageUnavailableError && this.#mayTryAgain(entry)) again.push(entry);
      else this.#reject(entry, error);
    }
    this.#judge(batch, failures);
    // Resolving a promise that was rejected above has no effect.
    const kept = new Set(again);
    for (const entry of batch) if (!kept.has(entry)) entry.resolve();
    this.#inFlight = [];
    if (again.length > 0) this.#putBack(again);
    this.#releaseFlushes();
  }

  /** Settles a batch of which everything was written. */
  #settled(batch: readonly Entry[]): void {
    this.#judge(batch, []);
    for (const { resolve } of batch) resolve();
    this.#inFlight = [];
    this.#releaseFlushes();
  }

  #judge(batch: readonly Entry[], failures: readonly UnitFailure[]): void {
    const away = failures.find(({ error }) => error instanceof StorageUnavailableError);
    if (away === undefined) this.#silence = undefined;
    if (away !== undefined) return this.#gate.close(away.error.message);
    if (failures.length < batch.length) return this.#gate.open();
    for (const { error } of failures)
      if (!isUniqueViolation(error) && !isOverdrawn(error)) this.#gate.refused(error.message);
  }

  #mayTryAgain({ acceptedAtMs }: Entry): boolean {
    return this.#clock.livedMs() - acceptedAtMs < this.#maxWaitMs;
  }

  #putBack(entries: Entry[]): void {
    this.#waiting = entries.concat(this.#waiting);
    clearTimeout(this.#expiryTimer);
    this.#watchExpiry();
  }

  #reject(entry: Entry, error: Error): void {
    this.#gate.rejectedCount += 1;
    entry.reject(error);
  }

  #releaseFlushes(): void {
    const oldest = this.#inFlight[0] ?? this.#waiting[0];
    const settledUpTo = oldest ? oldest.sequence - 1 : this.#lastSequence;
    while (this.#flushWaiters[0] && this.#flushWaiters[0].lastSequence <= settledUpTo) {
      this.#flushWaiters.shift()?.resolve();
    }
  }

  #watchExpiry(): void {
    const oldest = this.#waiting[0];
    if (!oldest) return;
    const delayMs = oldest.acceptedAtMs + this.#maxWaitMs - this.#clock.livedMs();
    this.#expiryTimer = setTimeout(() => this.#expire(), Math.max(delayMs, 1));
    this.#expiryTimer.unref();
  }

  #expire(): void {
    this.#expiryTimer = undefined;
    const deadlineMs = this.#clock.livedMs() - this.#maxWaitMs;
    const firstLive = this.#waiting.findIndex((entry) => entry.acceptedAtMs > deadlineMs);
    const tooLate = `the database did not take the commit within ${this.#maxWaitMs} ms`;
    const expired = this.#waiting.splice(0, firstLive === -1 ? this.#waiting.length : firstLive);
    for (const entry of expired) {
      this.#reject(entry, new StorageUnavailableError(tooLate));
    }
    if (expired.length > 0) {
      this.#gate.close(tooLate);
      this.#releaseFlushes();
    }
    this.#watchExpiry();
  }
}

const unitOf = ({ unit }: Entry): PackedUnit => unit;

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** The number of consecutive refusals, for any reason, that counts as an outage too. */
const refusalsInRow = 8;

/** Milliseconds between requests that may test whether commits work again. */
const trialEveryMs = 1_000;

/**
 * Decides whether work that has to be committed may begin. The gate closes with the first commit
 * that the database cannot take. After a successful test write it admits one request per second,
 * also where the one before was refused, and the first committed unit opens it.
 */
class CommitGate {
  readonly #clock: Clock;
  readonly #logger: StorageLogger | undefined;
  #state: "open" | "closed" | "trial" = "open";
  #closedAtMs = 0;
  #rejectedAtClose = 0;
  #refusedInRow = 0;
  #lastTrialMs = 0;
  readonly #logLimit: LogLimit;
  /** The number of units that were refused since the start. */
  rejectedCount = 0;

  constructor({ clock, logger }: { clock: Clock; logger?: StorageLogger | undefined }) {
    this.#clock = clock;
    this.#logger = logger;
    this.#logLimit = new LogLimit(clock);
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** Returns whether a request may begin whose charge has to be committed. */
  admits(): boolean {
    if (this.#state !== "trial") return this.#state === "open";
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastTrialMs < trialEveryMs) return false;
    this.#lastTrialMs = nowMs;
    return true;
  }

  /** Closes the gate: the database cannot take commits at the moment. */
  close(cause: string): void {
    if (this.#state === "open") {
      this.#lastTrialMs = -Infinity;
      this.#closedAtMs = this.#clock.monotonicMs();
      this.#rejectedAtClose = this.rejectedCount;
    }
    this.#state = "closed";
    this.#log(cause);
  }

  /**
   * Notes a unit that was refused for its content. Several in a row are a problem of the database,
   * such as missing permissions or a failing trigger.
   */
  refused(cause: string): void {
    this.#refusedInRow += 1;
    if (this.#refusedInRow >= refusalsInRow || this.#state === "trial") this.close(cause);
  }

  /** Notes a successful test write. */
  probed(): void {
    if (this.#state === "closed") this.#state = "trial";
  }

  /** Opens the gate: a unit was committed. */
  open(): void {
    this.#refusedInRow = 0;
    if (this.#state === "open") return;
    this.#state = "open";
    const seconds = Math.round((this.#clock.monotonicMs() - this.#closedAtMs) / 100) / 10;
    this.#logger?.info(
      { seconds, rejected: this.rejectedCount - this.#rejectedAtClose },
      "the database takes commits again",
    );
  }

  #log(cause: string): void {
    if (this.#logLimit.pass(cause) === undefined) return;
    this.#logger?.error(
      { cause, rejected: this.rejectedCount - this.#rejectedAtClose },
      `commits rejected: ${cause}; inference is refused with 503 until the database takes them again`,
    );
  }
}
