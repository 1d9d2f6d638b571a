import { type Kysely, type RawBuilder, sql } from "kysely";
import { type Clock, dayMs, hourMs } from "../platform/kernel/clock.ts";
import type { StorageKind } from "../platform/storage/storage.ts";
import { lowestIdAt, type GenerationStore, type GenerationTables } from "./generation-record.ts";
import type { JobRegistry } from "./health/job-registry.ts";
import type { UsageStore } from "./usage-store.ts";

/** Records of a time slice, over all workspaces. */
export interface RecordSlice {
  startMs: number;
  rows: number;
  /** Their approximate size in the database, in bytes. */
  bytes: number;
}

/** The records to measure, and the length of slices. */
export interface SlicesQuery {
  workspaceIds: readonly string[];
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  /**
   * The number of digits of the wall time in their ids that the records of a slice have in common.
   */
  digits: number;
  /** Ends the measuring early, which discards the result. */
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
 * The payload and the overflow of a record in SQLite: a record of up to 1,002 bytes stays in the
 * tree; a longer one leaves at least 489 bytes there, and the rest in pages that hold 4,092 bytes
 * each. Beside its texts a record has some 38 bytes, and pages of the tree are about seven eighths
 * full.
 */
const [payload, flowedOver] = ["(length + 38)", "((length + 38 - 489) / 4092)"];
const part = "(489 + (length + 38 - 489) % 4092)";
const sqliteCost = `case when ${payload} <= 1002 then 1.15 * ${payload} when ${part} <= 1002 then 1.15 * ${part} + 4096 * ${flowedOver}
  else 1.15 * 489 + 4096 * (${flowedOver} + 1) end`;

/**
 * The SQL of a record's size in bytes, from the `length` of its texts, as measured (decision 0048).
 */
const costSql: Readonly<Record<StorageKind, string>> = {
  sqlite: sqliteCost,
  // Headers, eight bytes for each number, and the primary key a second time in its index.
  postgres: "1.13 * (length + 190)",
};

const idPrefixLength = "gen_".length;
/** Hexadecimal digits of the wall time at the beginning of every id, after `gen_`. */
const timeDigits = 12;

/** Returns the length of the slices whose records share this many of these digits. */
export const sliceMsOf = (digits: number): number => 16 ** (timeDigits - digits);

/** Measures the size of generation records in the database. */
export class GenerationSizes {
  private readonly database: Kysely<GenerationTables>;
  private readonly kind: StorageKind;

  constructor({ database, kind }: { database: Kysely<GenerationTables>; kind: StorageKind }) {
    this.database = database;
    this.kind = kind;
  }

  /**
   * Returns an upper bound of the records' size in bytes, which the engine knows without reading
   * them.
   */
  async atMost(): Promise<number> {
    // On SQLite, everything in the file; on Postgres, the monthly partitions including deleted rows
    // whose space is not reused yet.
    const query =
      this.kind === "sqlite"
        ? sql`select (page_count - freelist_count) * page_size as bytes from pragma_page_count(), pragma_freelist_count(), pragma_page_size()`
        : sql`select sum(pg_total_relation_size(relid)) as bytes from pg_partition_tree('generations')`;
    const {
      rows: [row],
    } = await (query as RawBuilder<{ bytes: number | string }>).execute(this.database);
    return Number(row?.bytes ?? 0);
  }

  /** Returns the workspaces that have records, found by one step of the primary key for each. */
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

  /** Measures records by time slice, oldest first. Slices without records are left out. */
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
   * Returns the query of a workspace's next records, summed by the beginning of their ids; a range
   * of the primary key.
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

/** The archive of records, as retention sees it. */
export interface RecordArchive {
  /**
   * Returns when the oldest request came whose record is not archived yet; undefined where all are.
   */
  oldestWaitingMs(): Promise<number | undefined>;
  /** Called before records of requests before a wall time are deleted, and again after that. */
  deleting(beforeMs: number): Promise<void>;
  deleted(beforeMs: number): Promise<void>;
}

/** The monthly partitions of records, where the engine has partitions. */
export interface RecordMonths {
  /** Creates the partition of a wall time's month and those of the next months. */
  prepare(nowMs: number): Promise<void>;
  /** Drops the partitions of months that ended before a wall time. */
  dropBefore(beforeMs: number): Promise<void>;
}

/** Records that one statement deletes, so that settlements never wait long behind a purge. */
const deleteStepRows = 1_000;

/**
 * Days for which usage is kept by the hour: more than any range that may be requested by the hour.
 */
const usageHoursDays = 35;

/**
 * Deletes generation records past their retention, the oldest ones that exceed the size budget, and
 * old hours of usage. Charges and days of usage stay.
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
    /** Called once when records are deleted before their retention, to keep the size budget. */
    onOverBudget(excess: LogExcess): void;
    /** Keeps records for longer; none is deleted for its age before it is archived. */
    archive?: RecordArchive | undefined;
    /** Prompts and answers in the database; absent where the archive takes them. */
    contents?: { round(): Promise<void> } | undefined;
    /** Absent where records are kept in one table. */
    months?: RecordMonths | undefined;
    /** Called when partitions could not be created or dropped now. */
    onMonthsHeldUp?(error: unknown): void;
    /**
     * Returns whether this gateway, among several on the database, runs the jobs that run once;
     * absent where there is one.
     */
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
   * Creates the coming months' partitions, and starts to purge every hour, for the first time after
   * an hour, so that a start is not slowed.
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
    await this.options.contents?.round();
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
   * Changes partitions. Where queries block it, the change is left to the next hour: rows without a
   * partition go to the default one, and those of a partition that stays are deleted one by one.
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

  /** Stops; resolves when a purge in progress has ended, which is after its next step. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    return this.running;
  }
}
