import { hourMs } from "../platform/kernel/clock.ts";
import {
  type RecordSlice,
  type SlicesQuery,
  timeDigits,
  sliceMsOf,
  type GenerationSizes,
} from "./generation-sizes.ts";

/**
 * Digits in common of the slices that are remembered between runs: six make slices of 4.7 hours,
 * some 460 in 90 days.
 */
const knownDigits = 6;

const knownSliceMs = sliceMsOf(knownDigits);

/**
 * Digits by which the slice at the end of the budget is divided for a finer measurement,
 * repeatedly, down to a millisecond.
 */
const finerByDigits = 2;

/**
 * Milliseconds after which no more records are added to a slice. Ids begin with the time when a
 * request came, and records are written when it has ended.
 */
const settledAfterMs = hourMs;

/** A time later than every record. */
const endMs = 16 ** timeDigits - 1;

/** Records that exceed the budget. */
export interface LogExcess {
  /** The wall time before which their requests arrived. */
  beforeMs: number;
  rows: number;
  /** The workspaces that they may belong to. */
  workspaceIds: readonly string[];
}

type Measured = Pick<SlicesQuery, "workspaceIds" | "signal">;

type Sizes = Pick<GenerationSizes, "atMost" | "workspaceIds" | "slices">;

/**
 * Finds the oldest records that exceed the operator's size budget. Nothing is read while the whole
 * database fits into it.
 */
export class LogBudget {
  private readonly sizes: Sizes;
  private readonly budgetBytes: number;
  /** The measured sizes of slices that no longer change: all of them from one time to another. */
  private known: { fromMs: number; toMs: number; slices: RecordSlice[] } = {
    fromMs: 0,
    toMs: 0,
    slices: [],
  };

  constructor({ sizes, budgetBytes }: { sizes: Sizes; budgetBytes: number }) {
    this.sizes = sizes;
    this.budgetBytes = budgetBytes;
  }

  /**
   * Returns what has to be deleted for the rest to fit; undefined while everything does, or when
   * the signal has ended the measuring.
   */
  async excess({
    nowMs,
    signal,
  }: {
    nowMs: number;
    signal: AbortSignal;
  }): Promise<LogExcess | undefined> {
    if ((await this.sizes.atMost()) <= this.budgetBytes) return undefined;
    const workspaceIds = await this.sizes.workspaceIds();
    const slices = await this.measure(nowMs, { workspaceIds, signal });
    const cut = await this.cut(slices, {
      workspaceIds,
      signal,
      digits: knownDigits,
      room: this.budgetBytes,
    });
    return cut === undefined || cut.rows === 0 || signal.aborted
      ? undefined
      : { ...cut, workspaceIds };
  }

  /**
   * Discards the measurements of slices before a wall time, because their records are deleted;
   * without one, all measurements.
   */
  forget(beforeMs = endMs): void {
    const { toMs, slices } = this.known;
    const fromMs = Math.min(
      toMs,
      Math.max(this.known.fromMs, Math.ceil(beforeMs / knownSliceMs) * knownSliceMs),
    );
    this.known = { fromMs, toMs, slices: slices.filter(({ startMs }) => startMs >= fromMs) };
  }

  /** Returns all slices, oldest first. Known ones are not read again. */
  private async measure(nowMs: number, measured: Measured): Promise<RecordSlice[]> {
    const { fromMs, toMs, slices } = this.known;
    const older =
      fromMs === 0
        ? []
        : await this.sizes.slices({ ...measured, fromMs: 0, toMs: fromMs, digits: knownDigits });
    const newer = await this.sizes.slices({
      ...measured,
      fromMs: toMs,
      toMs: endMs,
      digits: knownDigits,
    });
    const all = [...older, ...slices, ...newer];
    if (measured.signal.aborted) return all;
    const knownToMs = Math.max(
      toMs,
      Math.floor((nowMs - settledAfterMs) / knownSliceMs) * knownSliceMs,
    );
    this.known = {
      fromMs: 0,
      toMs: knownToMs,
      slices: all.filter(({ startMs }) => startMs < knownToMs),
    };
    return all;
  }

  /**
   * Returns the wall time before which records have to be deleted for the newest to fit; undefined
   * where all slices fit.
   */
  private async cut(
    slices: readonly RecordSlice[],
    { digits, room, ...measured }: Measured & { digits: number; room: number },
  ): Promise<{ beforeMs: number; rows: number } | undefined> {
    const at = slices.findLastIndex(({ bytes }) => (room -= bytes) < 0);
    const slice = slices[at];
    if (slice === undefined) return undefined;
    const { startMs, bytes } = slice;
    const olderRows = slices.slice(0, at).reduce((sum, { rows }) => sum + rows, 0);
    if (digits === timeDigits) return { beforeMs: startMs + 1, rows: olderRows + slice.rows };
    const finer = { ...measured, digits: digits + finerByDigits };
    const parts = await this.sizes.slices({
      ...finer,
      fromMs: startMs,
      toMs: startMs + sliceMsOf(digits),
    });
    const within = await this.cut(parts, { ...finer, room: room + bytes });
    return { beforeMs: within?.beforeMs ?? startMs, rows: olderRows + (within?.rows ?? 0) };
  }
}
