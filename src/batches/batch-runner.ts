import type { Batch, BatchLine } from "./batch.ts";
import type { BatchRunnerParts } from "./batch-parts.ts";
import { leaseMs } from "./batch-store.ts";
import { finishBatch } from "./finish-batch.ts";
import {
  chargedFailure,
  keyGone,
  lineForms,
  type LineAnswer,
  type LineRequest,
  messageIn,
} from "./line-form.ts";
import { LinePace } from "./line-pace.ts";
import { type LineResult, resultRow } from "./line-store.ts";
import { InputReader, readBody } from "./input-reader.ts";
import { ProviderBatchRunner } from "./providers/provider-batch-runner.ts";
import type { ProviderPart } from "./providers/provider-batch-store.ts";
import { ResultSeal } from "./result-seal.ts";

/** Milliseconds between looks for work, also while no batch is open, and between writing what has ended. */
const lookEveryMs = 1_000;
const quietEveryMs = 10_000;
const markEveryMs = 250;

/** Lines that are taken from the database at once. */
const takenAtOnce = 32;

/** Milliseconds for which a batch without money waits before it tries one line again. */
const pauseMs = 5_000;

/** The most tries of a line that fails for a reason that may pass, and the waits in between. */
const triesMax = 6;
const backOff = { leastMs: 1_000, mostMs: 60_000 };

/** A batch in progress on this gateway. */
class ActiveBatch {
  waiting: BatchLine[] = [];
  /** Lines that run now. */
  readonly lines = new Set<number>();
  /** Results that are to be marked. */
  ended: LineResult[] = [];
  /** When their leases were renewed, and when the database is asked again, by the monotonic clock. */
  renewedMs = 0;
  isTaking = false;
  /** Whether a provider still runs lines of it. */
  isPartly = false;
  emptyUntilMs = 0;

  /** How many lines run now. */
  get running(): number {
    return this.lines.size;
  }

  /** The lines that this gateway has taken and that have no result yet. */
  get taken(): number[] {
    return [...this.lines, ...this.waiting.map(({ line }) => line)];
  }

  constructor(
    public batch: Batch,
    readonly seal: ResultSeal,
  ) {}
}

/**
 * Runs the batches of the database, beside other gateways on it: each takes lines by lease, and a
 * result is committed once, with the charge of its line.
 */
export class BatchRunner {
  private readonly active = new Map<string, ActiveBatch>();
  private readonly working = new Set<Promise<void>>();
  /** Batches that this gateway validates, or whose results it writes. */
  private readonly busy = new Set<string>();
  private readonly atProvider: ProviderBatchRunner | undefined;
  private readonly pace: LinePace;
  /** Starts the next line, where clients use the gateway. */
  private nextStart: ReturnType<typeof setTimeout> | undefined;
  private nextLook: ReturnType<typeof setTimeout> | undefined;
  private marking: ReturnType<typeof setInterval> | undefined;
  /** Whether no batch is open, and one can only come with a call of `wake`. */
  private isQuiet = false;
  private looking: Promise<void> | undefined;
  /** What is done after a look, beside which lines run on. */
  private beside: Promise<void> | undefined;
  /** Whether there may be work that a look in progress has missed. */
  private looksAgain = false;
  private running = 0;
  private draining = false;

  constructor(private readonly parts: BatchRunnerParts) {
    this.pace = new LinePace(parts.clock, parts.requestsInProgress);
    const { provider } = parts;
    if (provider !== undefined) this.atProvider = new ProviderBatchRunner({ ...parts, provider });
  }

  /** Continues what earlier processes have left, and looks for work from then on. */
  async start(): Promise<void> {
    if (!this.parts.isShared) {
      await this.parts.batches.releaseAll();
      await this.parts.lines.releaseAll();
    }
    this.wake();
  }

  /** Looks for work now. */
  wake(): void {
    if (this.draining) return;
    this.looksAgain = this.looking !== undefined;
    this.looking ??= this.look()
      .catch(this.parts.onError)
      .finally(() => {
        this.looking = undefined;
        if (this.looksAgain) return this.wake();
        clearTimeout(this.nextLook);
        this.nextLook = setTimeout(() => this.wake(), this.isQuiet ? quietEveryMs : lookEveryMs);
      });
  }

  /** Starts no more lines. */
  drain(): void {
    this.draining = true;
    this.atProvider?.drain();
  }

  /** Resolves when what is running has ended and is written; the rest is left to other gateways. */
  async stop(): Promise<void> {
    this.drain();
    clearTimeout(this.nextStart);
    await this.looking;
    clearTimeout(this.nextLook);
    clearInterval(this.marking);
    await this.beside;
    await Promise.all(this.working);
    await this.markAll();
    for (const active of this.active.values())
      await this.putBackWaiting(active).catch(this.parts.onError);
    this.active.clear();
  }

  private async look(): Promise<void> {
    this.isQuiet = false;
    await this.parts.beforeLook();
    const open = await this.parts.batches.open();
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, { running }] of this.active)
      if (!ids.has(id) && running === 0) this.active.delete(id);
    for (const batch of open) {
      if (this.draining) return;
      await this.advance(batch).catch(this.parts.onError);
    }
    this.fill();
    this.beside ??= this.parts
      .afterLook()
      .catch(this.parts.onError)
      .finally(() => (this.beside = undefined));
    this.isQuiet = open.length === 0 && !this.parts.isShared;
  }

  /** Does what the state of a batch asks for. */
  private async advance(batch: Batch): Promise<void> {
    const { clock, batches } = this.parts;
    await this.renew(batch);
    if (this.busy.has(batch.id)) {
      await batches.lease(batch.id);
      return;
    }
    if (batch.status === "validating") {
      if (await batches.lease(batch.id)) this.occupy(batch, this.validate(batch));
      return;
    }
    const place = await this.placeOf(batch);
    if (place === "away") return;
    const active = await this.activate(batch);
    active.isPartly = place === "partly";
    const isOver = batch.status !== "in_progress" || clock.nowMs() >= batch.expiresAtMs;
    if (isOver) await this.putBackWaiting(active);
    await this.mark(active);
    if (active.isPartly) return;
    const { undone, running } = await this.parts.lines.left(batch.id);
    if (isOver ? running === 0 : undone === 0) await this.conclude(batch, undone);
  }

  /** Renews the leases of the lines that this gateway has taken. */
  private async renew({ id }: Batch): Promise<void> {
    const active = this.active.get(id);
    const nowMs = this.parts.clock.monotonicMs();
    if (active === undefined || nowMs - active.renewedMs <= leaseMs / 3) return;
    active.renewedMs = nowMs;
    await this.parts.lines.renew(id, active.taken);
  }

  /** Does what a batch needs that a provider runs, or may run. Returns where its lines run. */
  private async placeOf(batch: Batch): Promise<"here" | "partly" | "away"> {
    const { atProvider } = this;
    if (atProvider === undefined || this.active.get(batch.id)?.isPartly === false) return "here";
    const place = await atProvider.placeOf(batch);
    const isUndecided = place === undefined && batch.status === "in_progress";
    if (!isUndecided && (place === undefined || place.state === "here")) return "here";
    const ended = place?.parts.filter(hasEnded).length ?? 0;
    if (await this.parts.batches.lease(batch.id))
      this.occupy(
        batch,
        atProvider.advance(batch, place).then(async () => {
          const { state, parts = [] } = (await atProvider.placeOf(batch)) ?? {};
          // What runs here now does so without a wait.
          if (state === "here" || parts.filter(hasEnded).length > ended) this.wake();
        }),
      );
    return ended > 0 ? "partly" : "away";
  }

  private async activate(batch: Batch): Promise<ActiveBatch> {
    const known = this.active.get(batch.id);
    if (known !== undefined) {
      known.batch = batch;
      return known;
    }
    // A gateway that had batches of providers may have handed lines over before it was restarted.
    if (this.atProvider === undefined) await this.parts.lines.takeBack(batch.id);
    const active = new ActiveBatch(batch, await ResultSeal.of(this.parts.vault, batch));
    this.active.set(batch.id, active);
    this.marking ??= setInterval(() => void this.markAll(), markEveryMs);
    return active;
  }

  private async validate(batch: Batch): Promise<void> {
    const { batches, lines, files, clock, callerOf, refuseModel } = this.parts;
    const { id, form, endpoint, keyId } = batch;
    const input = await files.heldFile(batch.inputFileId);
    const reader = new InputReader({
      batchId: id,
      form,
      endpoint,
      refuseModel(model) {
        const caller = callerOf(keyId);
        return caller && refuseModel(caller, model);
      },
    });
    if (input !== undefined) await lines.replace(id, reader.lines(files.read(input)));
    const nowMs = clock.nowMs();
    if (reader.problems.length > 0 || input === undefined) {
      await batches.change(id, ["validating"], {
        status: "failed",
        endedAtMs: nowMs,
        problems: reader.problems,
      });
      await lines.drop(id);
      await files.release(batch.inputFileId);
    } else
      await batches.change(id, ["validating"], {
        status: "in_progress",
        inProgressAtMs: nowMs,
        total: reader.total,
      });
    // A cancellation may have come first; the lines then count as not run.
    await batches.change(id, ["cancelling"], { total: reader.total });
    await batches.release(id);
    this.wake();
  }

  /** Writes the results of a batch all of whose lines have ended, or whose time is over. */
  private async conclude(batch: Batch, undone: number): Promise<void> {
    const { batches, clock } = this.parts;
    if (!(await batches.lease(batch.id))) return;
    const isCancelled = batch.status === "cancelling";
    if (batch.status === "in_progress") {
      const finalizingAtMs = clock.nowMs();
      await batches.change(batch.id, ["in_progress"], { status: "finalizing", finalizingAtMs });
    }
    const current = await batches.get(batch.id);
    if (current === undefined) return;
    const status =
      isCancelled || current.status === "cancelling"
        ? "cancelled"
        : undone > 0
          ? "expired"
          : "completed";
    this.occupy(
      current,
      finishBatch(this.parts, current, {
        status,
        reason: status === "cancelled" ? "cancelled" : "expired",
      }).then(async () => {
        await batches.release(batch.id);
        this.active.delete(batch.id);
      }),
    );
  }

  /** Starts lines while there is room, in turn for each batch. */
  private fill(): void {
    if (this.draining) return;
    const { clock } = this.parts;
    const [nowMs, tickMs] = [clock.nowMs(), clock.monotonicMs()];
    const ready = [...this.active.values()]
      .filter(({ batch }) => batch.status === "in_progress" && nowMs < batch.expiresAtMs)
      .filter(
        ({ batch, running }) =>
          batch.pausedUntilMs <= nowMs && !(batch.pauseNote !== null && running > 0),
      )
      .sort((one, other) => one.running - other.running);
    for (const active of ready) {
      if (this.running >= this.room()) return;
      if (active.waiting.length > 0) {
        this.startNext(active);
        return;
      }
      if (!active.isTaking && active.emptyUntilMs <= tickMs) this.track(this.takeMore(active));
    }
  }

  /** Starts a line of a batch, and what there is room for behind it: now, or when it is due. */
  private startNext(active: ActiveBatch): void {
    const waitMs = this.pace.take();
    if (waitMs > 0) {
      this.nextStart ??= setTimeout(() => {
        this.nextStart = undefined;
        this.fill();
      }, waitMs);
      return;
    }
    const line = active.waiting.shift();
    if (line !== undefined) this.begin(active, line);
    this.fill();
  }

  /** Returns how many lines may run: fewer while clients wait for answers, and one at least. */
  private room(): number {
    return Math.max(1, this.parts.concurrency - this.parts.requestsInProgress());
  }

  private async takeMore(active: ActiveBatch): Promise<void> {
    active.isTaking = true;
    try {
      const { lines, ended } = await this.parts.lines.take(active.batch.id, takenAtOnce);
      active.waiting.push(...lines);
      active.ended.push(...ended);
      if (lines.length === 0 && ended.length === 0)
        active.emptyUntilMs = this.parts.clock.monotonicMs() + lookEveryMs;
    } finally {
      active.isTaking = false;
    }
    this.fill();
  }

  private begin(active: ActiveBatch, line: BatchLine): void {
    active.lines.add(line.line);
    this.running += 1;
    const run = this.runLine(active, line).catch(async (error: unknown) => {
      this.parts.onError(error);
      const notBeforeMs = this.parts.clock.nowMs() + pauseMs;
      await this.parts.lines.putBack(active.batch.id, [line.line], { notBeforeMs });
    });
    this.track(
      run.finally(() => {
        active.lines.delete(line.line);
        this.running -= 1;
        this.fill();
      }),
    );
  }

  private async runLine(active: ActiveBatch, line: BatchLine): Promise<void> {
    const { batch, seal } = active;
    const { clock, callerOf, lines, run } = this.parts;
    await this.pace.untilIdle();
    const caller = callerOf(batch.keyId);
    if (caller === undefined) return this.fail(active, line, keyGone(batch));
    const bodyText = await readBody(this.parts.files, batch, line);
    const rowOf: LineRequest["rowOf"] = (answer) =>
      resultRow({
        batch_id: batch.id,
        line: line.line,
        status: answer?.status ?? 0,
        cost_nano: answer?.costNano ?? 0,
        result: seal.seal(
          line.line,
          lineForms[batch.form].answered(line, answer ?? chargedFailure(batch), clock.nowMs()),
        ),
      });
    const outcome = await run({ batch, bodyText, caller, rowOf });
    const committed = await lines.result(batch.id, line.line);
    if (committed !== undefined && committed.status !== 0) {
      active.ended.push(committed);
      if (batch.pauseNote !== null) await this.resume(active);
      return;
    }
    const isCharged = committed !== undefined;
    if (outcome.lacksMoney && !isCharged) return this.pause(active, line, outcome);
    if (outcome.mayRetry && !isCharged && line.tries < triesMax) {
      const waitMs = outcome.retryAfterMs ?? backOff.leastMs * 2 ** (line.tries - 1);
      await lines.putBack(batch.id, [line.line], {
        notBeforeMs: clock.nowMs() + Math.min(waitMs, backOff.mostMs),
        // A full rate window is no failure of the line.
        keepsTries: outcome.status !== 429,
      });
      return;
    }
    await this.fail(active, line, outcome);
  }

  private async fail(active: ActiveBatch, line: BatchLine, answer: LineAnswer): Promise<void> {
    const { batch, seal } = active;
    const text = lineForms[batch.form].answered(line, answer, this.parts.clock.nowMs());
    const result = {
      batch_id: batch.id,
      line: line.line,
      status: answer.status,
      cost_nano: 0,
      result: seal.seal(line.line, text),
    };
    active.ended.push(await this.parts.lines.fail(result));
  }

  /** Stops the lines of a batch for a while, since nothing is left to pay them from. */
  private async pause(active: ActiveBatch, line: BatchLine, { text }: LineAnswer): Promise<void> {
    const { lines, batches, clock } = this.parts;
    const untilMs = clock.nowMs() + pauseMs;
    const note = `Paused until there is money for the next request: ${messageIn(text)}`;
    const waiting = active.waiting.splice(0).map((each) => each.line);
    active.batch = { ...active.batch, pauseNote: note, pausedUntilMs: untilMs };
    active.emptyUntilMs = 0;
    await batches.pause(active.batch.id, note, untilMs);
    await lines.putBack(active.batch.id, [line.line, ...waiting], { keepsTries: false });
  }

  private async resume(active: ActiveBatch): Promise<void> {
    active.batch = { ...active.batch, pauseNote: null, pausedUntilMs: 0 };
    await this.parts.batches.pause(active.batch.id, null, 0);
  }

  private async putBackWaiting(active: ActiveBatch): Promise<void> {
    const waiting = active.waiting.splice(0).map(({ line }) => line);
    await this.parts.lines.putBack(active.batch.id, waiting, { keepsTries: false });
  }

  private async markAll(): Promise<void> {
    if (this.active.size === 0) this.marking = void clearInterval(this.marking);
    for (const active of this.active.values()) await this.mark(active).catch(this.parts.onError);
  }

  /** Marks lines with results as done, and looks for work once all are. */
  private async mark(active: ActiveBatch): Promise<void> {
    const ended = active.ended.splice(0);
    if (ended.length === 0) return;
    try {
      await this.parts.lines.markDone(active.batch.id, ended);
    } catch (error) {
      active.ended.unshift(...ended);
      throw error;
    }
    if (active.running === 0 && active.waiting.length === 0) this.wake();
  }

  private occupy({ id }: Batch, work: Promise<void>): void {
    this.busy.add(id);
    this.track(work.finally(() => void this.busy.delete(id)));
  }

  private track(work: Promise<void>): void {
    const tracked = work.catch(this.parts.onError).finally(() => void this.working.delete(tracked));
    this.working.add(tracked);
  }
}

const hasEnded = ({ state }: ProviderPart): boolean => state === "ended";
