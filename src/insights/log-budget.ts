import { hourMs } from "../platform/lib/clock.ts";
import {
  sliceMsOf,
  timeDigits,
  type GenerationSizes,
  type RecordSlice,
  type SlicesQuery,
} from "./generation-sizes.ts";

/** Slices of time that are remembered from run to run share six digits of their ids: 4.7 hours each, some 460 in 90 days. */
const knownDigits = 6;
const knownSliceMs = sliceMsOf(knownDigits);
/** The slice in which the budget ends is measured by shorter ones, those again, the last of them a millisecond long. */
const finerByDigits = 2;

/** Ids begin with when a request came, and records are written when it has ended: after this, no more come to a slice. */
const settledAfterMs = hourMs;

/** Later than every record. */
const endMs = 16 ** timeDigits - 1;

/** Records that are too many. */
export interface LogExcess {
  /** Those of requests that came before this wall time. */
  beforeMs: number;
  rows: number;
  /** Whose they may be. */
  workspaceIds: readonly string[];
}

type Measured = Pick<SlicesQuery, "workspaceIds" | "signal">;
type Sizes = Pick<GenerationSizes, "atMost" | "workspaceIds" | "slices">;

/** Finds the oldest records that the operator's budget has no room for. Nothing is read while the whole database fits into it. */
export class LogBudget {
  private readonly sizes: Sizes;
  private readonly budgetBytes: number;
  /** What was measured of slices that nothing comes to any more: all of them from one time to another. */
  private known: { fromMs: number; toMs: number; slices: RecordSlice[] } = {
    fromMs: 0,
    toMs: 0,
    slices: [],
  };

  constructor({ sizes, budgetBytes }: { sizes: Sizes; budgetBytes: number }) {
    this.sizes = sizes;
    this.budgetBytes = budgetBytes;
  }

  /** What has to go for the rest to fit; undefined while everything does, or when the signal has ended the measuring. */
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

  /** Records before a wall time are deleted: what is known of their slices no longer holds. Without one, nothing is known any more. */
  forget(beforeMs = endMs): void {
    const { toMs, slices } = this.known;
    const fromMs = Math.min(
      toMs,
      Math.max(this.known.fromMs, Math.ceil(beforeMs / knownSliceMs) * knownSliceMs),
    );
    this.known = { fromMs, toMs, slices: slices.filter(({ startMs }) => startMs >= fromMs) };
  }

  /** All slices, oldest first; what is known of them is not read again. */
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

  /** Before when records go for the newest to fit into the room; undefined where all slices fit. */
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
