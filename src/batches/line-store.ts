import { type Kysely, sql } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import {
  type CommitQueue,
  type CommitUnit,
  recordInsert,
} from "../platform/storage/commit-queue.ts";
import type { BatchLine, BatchTables } from "./batch.ts";
import { BatchStore, leaseMs } from "./batch-store.ts";
import type { LeaseTime } from "./lease-time.ts";

/** A line with its result. */
export type LineResult = BatchTables["batch_results"];

const resultInsert = recordInsert<BatchTables["batch_results"], LineResult>({
  name: "batch-result",
  table: "batch_results",
  columns: {
    batch_id: (result) => result.batch_id,
    line: (result) => result.line,
    status: (result) => result.status,
    cost_nano: (result) => result.cost_nano,
    result: (result) => result.result,
  },
});

/** The insert of results, which commits with the charge of the line. */
export const batchResultInsert = resultInsert.statement;

/** Returns the row of a result for the commit of its charge. A second one of a line is refused. */
export const resultRow = (result: LineResult): CommitUnit["inserts"][number] =>
  resultInsert.rowOf(result);

/** Rows that are inserted, or results that are read, at once. */
const rowsMax = 500;

/** Stores the lines of batches, and their results until they are in files. */
export class LineStore {
  private readonly database: Kysely<BatchTables>;
  private readonly commits: CommitQueue;
  private readonly clock: Clock;
  private readonly nodeId: string;
  private readonly leaseTime: LeaseTime;

  constructor(parts: {
    database: Kysely<BatchTables>;
    commits: CommitQueue;
    clock: Clock;
    nodeId: string;
    leaseTime: LeaseTime;
  }) {
    this.database = parts.database;
    this.commits = parts.commits;
    this.clock = parts.clock;
    this.nodeId = parts.nodeId;
    this.leaseTime = parts.leaseTime;
  }

  /** Replaces the lines of a batch that is being validated. */
  async replace(batchId: string, lines: AsyncIterable<readonly BatchLine[]>): Promise<void> {
    await this.database.deleteFrom("batch_lines").where("batch_id", "=", batchId).execute();
    for await (const some of lines) {
      for (let at = 0; at < some.length; at += rowsMax)
        await this.database
          .insertInto("batch_lines")
          .values(some.slice(at, at + rowsMax).map(rowOf))
          .execute();
    }
  }

  /**
   * Takes lines that no gateway works on, in their order. Lines that have a result already, whose
   * gateway ended before it marked them, are returned apart.
   */
  async take(batchId: string, limit: number): Promise<{ lines: BatchLine[]; ended: LineResult[] }> {
    const nowMs = this.clock.nowMs();
    const isHere = sql<boolean>`done = 0 and upstream_model is null and not_before_ms <= ${nowMs}`;
    const now = this.leaseTime();
    const isFree = sql<boolean>`${isHere} and (leased_by is null or leased_until_ms < ${now})`;
    const rows = await this.database
      .updateTable("batch_lines")
      .set({
        leased_by: this.nodeId,
        leased_until_ms: sql<number>`${now} + ${leaseMs}`,
        tries: sql<number>`tries + 1`,
      })
      .where("batch_id", "=", batchId)
      .where(
        "line",
        "in",
        this.database
          .selectFrom("batch_lines")
          .select("line")
          .where("batch_id", "=", batchId)
          .where(isFree)
          .orderBy("line")
          .limit(limit),
      )
      // Repeated, since another gateway may have taken a line in between.
      .where(isFree)
      .returningAll()
      .execute();
    if (rows.length === 0) return { lines: [], ended: [] };
    const ended = await this.database
      .selectFrom("batch_results")
      .selectAll()
      .where("batch_id", "=", batchId)
      .where(
        "line",
        "in",
        rows.map(({ line }) => line),
      )
      .execute();
    const known = new Set(ended.map(({ line }) => line));
    const lines = rows
      .filter(({ line }) => !known.has(line))
      .map(lineOf)
      .sort((one, other) => one.line - other.line);
    return { lines, ended };
  }

  /** Renews the leases of lines that this gateway has taken. */
  async renew(batchId: string, lines: readonly number[]): Promise<void> {
    if (lines.length === 0) return;
    await this.database
      .updateTable("batch_lines")
      .set({ leased_until_ms: sql<number>`${this.leaseTime()} + ${leaseMs}` })
      .where("batch_id", "=", batchId)
      .where("line", "in", [...lines])
      .where("leased_by", "=", this.nodeId)
      .where("done", "=", 0)
      .execute();
  }

  /** Returns lines to the batch, to be run again from a time on. */
  async putBack(
    batchId: string,
    lines: readonly number[],
    { notBeforeMs = 0, keepsTries = true } = {},
  ): Promise<void> {
    if (lines.length === 0) return;
    await this.database
      .updateTable("batch_lines")
      .set({
        leased_by: null,
        leased_until_ms: 0,
        not_before_ms: notBeforeMs,
        ...(!keepsTries && { tries: sql<number>`tries - 1` }),
      })
      .where("batch_id", "=", batchId)
      .where("line", "in", [...lines])
      .where("leased_by", "=", this.nodeId)
      .execute();
  }

  /** Releases all lines that an earlier process on this database had taken. */
  async releaseAll(): Promise<void> {
    await this.database
      .updateTable("batch_lines")
      .set({ leased_by: null, leased_until_ms: 0 })
      .where("leased_by", "is not", null)
      .execute();
  }

  /**
   * Stores the result of a line that failed. Where its charge is committed, it replaces what was
   * committed with it; a whole answer stays.
   */
  async fail(result: LineResult): Promise<LineResult> {
    try {
      await this.commits.commit({ inserts: [resultRow(result)], adds: [] });
      return result;
    } catch (error) {
      const known = await this.result(result.batch_id, result.line);
      if (known === undefined) throw error;
      if (known.status !== 0) return known;
    }
    await this.database
      .updateTable("batch_results")
      .set({ status: result.status, result: result.result })
      .where("batch_id", "=", result.batch_id)
      .where("line", "=", result.line)
      .where("status", "=", 0)
      .execute();
    return (await this.result(result.batch_id, result.line)) ?? result;
  }

  /** Returns the result of a line; undefined where it has none. */
  async result(batchId: string, line: number): Promise<LineResult | undefined> {
    return await this.database
      .selectFrom("batch_results")
      .selectAll()
      .where("batch_id", "=", batchId)
      .where("line", "=", line)
      .executeTakeFirst();
  }

  /** Marks lines as done and counts them to their batch, each once. */
  async markDone(batchId: string, results: readonly LineResult[]): Promise<void> {
    await this.database.transaction().execute(async (transaction) => {
      const marked = await transaction
        .updateTable("batch_lines")
        .set({ done: 1, leased_by: null })
        .where("batch_id", "=", batchId)
        .where(
          "line",
          "in",
          results.map(({ line }) => line),
        )
        .where("done", "=", 0)
        .returning("line")
        .execute();
      const lines = new Set(marked.map(({ line }) => line));
      const counted = results.filter(({ line }) => lines.has(line));
      const completed = counted.filter(({ status }) => isSuccess(status)).length;
      const costNano = counted.reduce((sum, { cost_nano }) => sum + cost_nano, 0);
      const failed = counted.length - completed;
      await BatchStore.count(transaction, { id: batchId, completed, failed, costNano });
    });
  }

  /** Returns what is left of a batch: lines without a result, and those that a gateway works on. */
  async left(batchId: string): Promise<{ undone: number; running: number }> {
    const row = await this.database
      .selectFrom("batch_lines")
      .select([
        sql<number>`count(*)`.as("undone"),
        sql<number>`coalesce(sum(case when leased_by is not null and leased_until_ms >= ${this.leaseTime()} then 1 else 0 end), 0)`.as(
          "running",
        ),
      ])
      .where("batch_id", "=", batchId)
      .where("done", "=", 0)
      .executeTakeFirstOrThrow();
    return { undone: Number(row.undone), running: Number(row.running) };
  }

  /** Reads the results of a batch in the order of its lines. */
  async *results(batchId: string): AsyncGenerator<LineResult> {
    for (let after = 0; ; ) {
      const rows = await this.database
        .selectFrom("batch_results")
        .selectAll()
        .where("batch_id", "=", batchId)
        .where("line", ">", after)
        .orderBy("line")
        .limit(100)
        .execute();
      yield* rows;
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.line;
    }
  }

  /** Reads the lines of a batch that were not run. */
  async *notRun(batchId: string): AsyncGenerator<BatchLine> {
    for (let after = 0; ; ) {
      const rows = await this.database
        .selectFrom("batch_lines")
        .selectAll()
        .where("batch_id", "=", batchId)
        .where("done", "=", 0)
        .where("line", ">", after)
        .orderBy("line")
        .limit(rowsMax)
        .execute();
      yield* rows.map(lineOf);
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.line;
    }
  }

  /** Notes the models of lines that a provider is handed, and what is reserved for each. */
  async reserve(
    batchId: string,
    lines: readonly { line: number; model: string; upstreamModel: string; reservedNano: bigint }[],
  ): Promise<void> {
    await this.database.transaction().execute(async (transaction) => {
      for (const { line, model, upstreamModel, reservedNano } of lines)
        await transaction
          .updateTable("batch_lines")
          .set({ model, upstream_model: upstreamModel, reserved_nano: Number(reservedNano) })
          .where("batch_id", "=", batchId)
          .where("line", "=", line)
          .execute();
    });
  }

  /** Has lines that a provider was handed run here, where they have no result: all, or those of a part. */
  async takeBack(
    batchId: string,
    part?: { firstLine: number; lastLine: number; upstreamModel: string | null },
  ): Promise<void> {
    let change = this.database
      .updateTable("batch_lines")
      .set({ model: null, upstream_model: null, reserved_nano: 0 })
      .where("batch_id", "=", batchId)
      .where("upstream_model", "is not", null)
      .where("done", "=", 0);
    if (part !== undefined)
      change = change.where("line", ">=", part.firstLine).where("line", "<=", part.lastLine);
    if (part?.upstreamModel != null)
      change = change.where("upstream_model", "=", part.upstreamModel);
    await change.execute();
  }

  /** Returns what is reserved for the lines without a result of some batches, in nano-USD. */
  async reserved(batchIds: readonly string[]): Promise<ReadonlyMap<string, bigint>> {
    if (batchIds.length === 0) return new Map();
    const rows = await this.database
      .selectFrom("batch_lines")
      .select(["batch_id", sql<number | string>`sum(reserved_nano)`.as("nano")])
      .where("batch_id", "in", [...batchIds])
      .where("done", "=", 0)
      .groupBy("batch_id")
      .execute();
    return new Map(rows.map(({ batch_id, nano }) => [batch_id, BigInt(nano)]));
  }

  /** Counts the failures of a batch that runs, by HTTP status. */
  async failures(batchId: string): Promise<Record<string, number>> {
    const rows = await this.database
      .selectFrom("batch_results")
      .select(["status", sql<number | string>`count(*)`.as("lines")])
      .where("batch_id", "=", batchId)
      .where("status", ">=", 300)
      .groupBy("status")
      .execute();
    return Object.fromEntries(rows.map(({ status, lines }) => [String(status), Number(lines)]));
  }

  /** Returns those of some lines that are not done, each with its result where it has one. */
  async undone(
    batchId: string,
    lines: readonly number[],
  ): Promise<{ line: BatchLine; result: LineResult | undefined }[]> {
    if (lines.length === 0) return [];
    const rows = await this.database
      .selectFrom("batch_lines")
      .selectAll()
      .where("batch_id", "=", batchId)
      .where("line", "in", [...lines])
      .where("done", "=", 0)
      .execute();
    const results = await this.database
      .selectFrom("batch_results")
      .selectAll()
      .where("batch_id", "=", batchId)
      .where("line", "in", [...lines])
      .execute();
    const byLine = new Map(results.map((result) => [result.line, result]));
    return rows.map((row) => ({ line: lineOf(row), result: byLine.get(row.line) }));
  }

  /** Deletes the lines and results of a batch, which are in files by now. */
  async drop(batchId: string): Promise<void> {
    for (const table of ["batch_results", "batch_lines"] as const)
      await this.database.deleteFrom(table).where("batch_id", "=", batchId).execute();
  }
}

/** Returns whether a status is that of an answer. */
export const isSuccess = (status: number): boolean => status >= 200 && status < 300;

const rowOf = ({
  batchId,
  line,
  customId,
  start,
  length,
}: BatchLine): BatchTables["batch_lines"] => ({
  batch_id: batchId,
  line,
  custom_id: customId,
  start_byte: start,
  bytes: length,
  leased_by: null,
  leased_until_ms: 0,
  not_before_ms: 0,
  tries: 0,
  done: 0,
  model: null,
  upstream_model: null,
  reserved_nano: 0,
});

const lineOf = (row: BatchTables["batch_lines"]): BatchLine => ({
  batchId: row.batch_id,
  line: row.line,
  customId: row.custom_id,
  start: row.start_byte,
  length: row.bytes,
  tries: row.tries,
  model: row.model,
  upstreamModel: row.upstream_model,
  reservedNano: row.reserved_nano,
});
