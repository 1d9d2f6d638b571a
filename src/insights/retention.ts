import { type Kysely, type RawBuilder, sql } from "kysely";
import { type Clock, dayMs, hourMs } from "../platform/kernel/clock.ts";
import type { StorageKind } from "../platform/storage/storage.ts";
import { lowestIdAt, type GenerationStore, type GenerationTables } from "./generation-record.ts";
import type { JobRegistry } from "./health/job-registry.ts";
import type { UsageStore } from "./usage-store.ts";

/** Records of a stretch of time, over all workspaces. */
export interface RecordSlice {
  startMs: number;
  rows: number;
  /** What they take in the database, about. */
  bytes: number;
}

/** Which records are measured, and in how long slices. */
export interface SlicesQuery {
  workspaceIds: readonly string[];
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  /** How many digits of the wall time in their ids the records of a slice have in common. */
  digits: number;
  /** Ends the measuring early; what comes then is of no use. */
  signal: AbortSignal;
}

/** Records that one statement measures, so that other reads never wait long behind it. */
const measureStepRows = 2_000;

const textColumns = [
  "id",
  "workspace_id",
  "key_id",
  "surface",
  "requested_model",
  "model",
  "provider",
  "upstream_model",
  "upstream_id",
  "status",
  "finish_reason",
  "detail",
] as const;

/**
 * SQLite keeps a record of up to 1,002 bytes in the tree; of a longer one a part of at least 489,
 * and the rest in pages of its own that hold 4,092 each. Beside its texts a record has some 38
 * bytes; pages of the tree are about seven eighths full.
 */
const [payload, flowedOver] = ["(length + 38)", "((length + 38 - 489) / 4092)"];
const part = "(489 + (length + 38 - 489) % 4092)";
const sqliteCost = `case when ${payload} <= 1002 then 1.15 * ${payload} when ${part} <= 1002 then 1.15 * ${part} + 4096 * ${flowedOver}
  else 1.15 * 489 + 4096 * (${flowedOver} + 1) end`;

/** Bytes that a record takes whose texts have `length`, as it was measured (decision 0048). */
const costSql: Readonly<Record<StorageKind, string>> = {
  sqlite: sqliteCost,
  // Headers, eight bytes a number, and the primary key once more in its index.
  postgres: "1.13 * (length + 190)",
};

const idPrefixLength = "gen_".length;
/** Hexadecimal digits of the wall time at the beginning of every id, after `gen_`. */
const timeDigits = 12;

/** How long the slices are whose records have so many of these digits in common. */
export const sliceMsOf = (digits: number): number => 16 ** (timeDigits - digits);

/** How much the generation records take in the database. */
export class GenerationSizes {
  private readonly database: Kysely<GenerationTables>;
  private readonly kind: StorageKind;

  constructor({ database, kind }: { database: Kysely<GenerationTables>; kind: StorageKind }) {
    this.database = database;
    this.kind = kind;
  }

  /** Bytes that the records do not exceed, told by the engine without reading any of them. */
  async atMost(): Promise<number> {
    // On SQLite everything that the file holds; on Postgres the months with what was deleted from
    // them and is not used again yet.
    const query =
      this.kind === "sqlite"
        ? sql`select (page_count - freelist_count) * page_size as bytes from pragma_page_count(), pragma_freelist_count(), pragma_page_size()`
        : sql`select sum(pg_total_relation_size(relid)) as bytes from pg_partition_tree('generations')`;
    const {
      rows: [row],
    } = await (query as RawBuilder<{ bytes: number | string }>).execute(this.database);
    return Number(row?.bytes ?? 0);
  }

  /** Returns the workspaces that have records, found by one step of the primary key each. */
  async workspaceIds(): Promise<string[]> {
    const found: string[] = [];
    for (let last = ""; ; ) {
      const next = await this.database
        .selectFrom("generations")
        .select("workspace_id")
        .where("workspace_id", ">", last)
        .orderBy("workspace_id")
        .limit(1)
        .executeTakeFirst();
      if (next === undefined) return found;
      last = next.workspace_id;
      found.push(last);
    }
  }

  /** Measures records by slices of time, oldest first; slices without records are left out. */
  async slices(query: SlicesQuery): Promise<RecordSlice[]> {
    const byStart = new Map<number, RecordSlice>();
    for (const workspaceId of query.workspaceIds) {
      for (let after: string | undefined; ; ) {
        const { rows } = await this.stepSql(workspaceId, { ...query, after }).execute(
          this.database,
        );
        for (const row of rows) add(byStart, row, query.digits);
        if (
          query.signal.aborted ||
          rows.reduce((sum, row) => sum + Number(row.rows), 0) < measureStepRows
        )
          break;
        after = rows.at(-1)?.last;
      }
    }
    return [...byStart.values()].sort((left, right) => left.startMs - right.startMs);
  }

  /**
   * The next records of a workspace, added up by what their ids begin with; a range of the primary
   * key.
   */
  private stepSql(
    workspaceId: string,
    { fromMs, toMs, digits, after }: SlicesQuery & { after: string | undefined },
  ): RawBuilder<StepRow> {
    const texts = sql.join(
      textColumns.map((name) => sql`coalesce(octet_length(${sql.ref(name)}), 0)`),
      sql` + `,
    );
    const from = after === undefined ? sql`id >= ${lowestIdAt(fromMs)}` : sql`id > ${after}`;
    const slice = sql`substr(id, ${sql.lit(idPrefixLength + 1)}, ${sql.lit(digits)})`;
    return sql<StepRow>`select ${slice} as slice, count(*) as rows, sum(${sql.raw(costSql[this.kind])}) as bytes, max(id) as last from (
      select id, ${texts} as length from generations
      where workspace_id = ${workspaceId} and ${from} and id < ${lowestIdAt(toMs)} order by id limit ${sql.lit(measureStepRows)}
    ) as step group by 1 order by 1`;
  }
}

interface StepRow {
  slice: string;
  rows: number | string;
  bytes: number | string;
  last: string;
}

function add(byStart: Map<number, RecordSlice>, row: StepRow, digits: number): void {
  const startMs = Number.parseInt(row.slice, 16) * sliceMsOf(digits);
  const slice = byStart.get(startMs) ?? { startMs, rows: 0, bytes: 0 };
  slice.rows += Number(row.rows);
  slice.bytes += Number(row.bytes);
  byStart.set(startMs, slice);
}

/**
 * Slices of time that are remembered from run to run share six digits of their ids: 4.7 hours each,
 * some 460 in 90 days.
 */
const knownDigits = 6;
const knownSliceMs = sliceMsOf(knownDigits);
/**
 * The slice in which the budget ends is measured by shorter ones, those again, the last of them a
 * millisecond long.
 */
const finerByDigits = 2;

/**
 * Ids begin with when a request came, and records are written when it has ended: after this, no
 * more come to a slice.
 */
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

/**
 * Finds the oldest records that the operator's budget has no room for. Nothing is read while the
 * whole database fits into it.
 */
export class LogBudget {
  private readonly sizes: Sizes;
  private readonly budgetBytes: number;
  /**
   * What was measured of slices that nothing comes to any more: all of them from one time to
   * another.
   */
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
   * What has to go for the rest to fit; undefined while everything does, or when the signal has
   * ended the measuring.
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
   * Records before a wall time are deleted: what is known of their slices no longer holds. Without
   * one, nothing is known any more.
   */
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

/** Where records go beside the database, as retention sees it. */
export interface RecordArchive {
  /** When the oldest request came whose record is not archived yet; undefined where all are. */
  oldestWaitingMs(): Promise<number | undefined>;
  /** Told before records of requests before a wall time are deleted, and after that. */
  deleting(beforeMs: number): Promise<void>;
  deleted(beforeMs: number): Promise<void>;
}

/** The months that records are kept in, where the engine has partitions. */
export interface RecordMonths {
  /** Makes the month of a wall time and those that come. */
  prepare(nowMs: number): Promise<void>;
  /** Drops the months that have ended before a wall time. */
  dropBefore(beforeMs: number): Promise<void>;
}

/** Records that one statement deletes, so that settlements never wait long behind a purge. */
const deleteStepRows = 1_000;

/**
 * How long usage is kept by the hour, in days: longer than any range that may be asked for by the
 * hour.
 */
const usageHoursDays = 35;

/**
 * Deletes generation records that are older than the operator keeps them, the oldest that the
 * operator's budget has no room for, and old hours of usage. Charges and days of usage stay.
 */
export class Retention {
  private readonly options: {
    generations: GenerationStore;
    usage: UsageStore;
    jobs: JobRegistry;
    clock: Clock;
    keepDays: number;
    budget: LogBudget;
    workspaceIds(): string[];
    onError(error: unknown): void;
    /** Called once, when records are deleted before their days for the budget. */
    onOverBudget(excess: LogExcess): void;
    /** Keeps records for longer; none is deleted for its age before it is archived. */
    archive?: RecordArchive | undefined;
    /** Absent where records are kept in one table. */
    months?: RecordMonths | undefined;
    /** Told of months that could not be made or dropped now. */
    onMonthsHeldUp?(error: unknown): void;
    /** Where several gateways share the database, whether this one does what is done once. */
    isLeader?: (() => boolean) | undefined;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();
  private toldOfBudget = false;

  constructor(options: Retention["options"]) {
    this.options = options;
  }

  /**
   * Makes the months that come, and purges every hour from now on; the first time after an hour, so
   * that a start is not slowed.
   */
  start(): void {
    const { clock } = this.options;
    this.running = this.changeMonths((months) => months.prepare(clock.nowMs()));
    this.timer = setInterval(() => {
      // What another gateway deletes while it leads is not known here.
      if (this.options.isLeader?.() === false) return this.options.budget.forget();
      this.running = this.options.jobs.run(
        "generation_retention",
        () => this.purge(),
        (error) => this.options.onError(error),
      );
    }, hourMs);
  }

  /** Deletes everything that is due. */
  async purge(): Promise<void> {
    const { usage, clock, keepDays, budget, workspaceIds, archive } = this.options;
    await this.changeMonths((months) => months.prepare(clock.nowMs()));
    const beforeMs = Math.min(
      clock.nowMs() - keepDays * dayMs,
      (await archive?.oldestWaitingMs()) ?? Infinity,
    );
    const hoursBeforeMs = clock.nowMs() - usageHoursDays * dayMs;
    await usage.deleteNetworkHoursBefore(hoursBeforeMs);
    await archive?.deleting(beforeMs);
    await this.changeMonths((months) => months.dropBefore(beforeMs));
    for (const workspaceId of workspaceIds()) {
      await usage.deleteHoursBefore(workspaceId, hoursBeforeMs);
      await this.deleteRecords(workspaceId, beforeMs);
    }
    budget.forget(beforeMs);
    await this.purgeForBudget();
  }

  /** Deletes the oldest records of all workspaces until the rest fit into the budget. */
  private async purgeForBudget(): Promise<void> {
    const { budget, clock, onOverBudget, archive } = this.options;
    const excess = await budget.excess({ nowMs: clock.nowMs(), signal: this.stopping.signal });
    if (excess === undefined) return;
    if (!this.toldOfBudget) onOverBudget(excess);
    this.toldOfBudget = true;
    budget.forget(excess.beforeMs);
    await archive?.deleting(excess.beforeMs);
    await this.changeMonths((months) => months.dropBefore(excess.beforeMs));
    for (const workspaceId of excess.workspaceIds)
      await this.deleteRecords(workspaceId, excess.beforeMs);
    if (!this.stopping.signal.aborted) await archive?.deleted(excess.beforeMs);
  }

  /**
   * What queries hold up is left to the next hour: rows that no month is there for have a place, and
   * those of a month that stays are deleted one by one.
   */
  private async changeMonths(change: (months: RecordMonths) => Promise<void>): Promise<void> {
    const { months, onMonthsHeldUp = () => undefined } = this.options;
    if (months !== undefined) await change(months).catch(onMonthsHeldUp);
  }

  /**
   * Deletes a workspace's records that are older than a wall time, step by step, until it is done
   * or the gateway ends.
   */
  private async deleteRecords(workspaceId: string, beforeMs: number): Promise<void> {
    const { generations } = this.options;
    const step = { workspaceId, beforeMs, limit: deleteStepRows };
    while (
      !this.stopping.signal.aborted &&
      (await generations.deleteBefore(step)) === deleteStepRows
    );
  }

  /** Resolves when a purge that is under way has ended, which is after its next step. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    return this.running;
  }
}
