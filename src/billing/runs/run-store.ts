import { type Kysely, sql } from "kysely";
import type { Run } from "../../identity/keys/run.ts";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import type { LedgerTables } from "../ledger/ledger-store.ts";

/** Rows of runs, and the spending of their keys. */
export type RunTables = Pick<LedgerTables, SpendTable> & { runs: RowOf<Run> };

type SpendTable = "key_spend_hours" | "key_byok_hours";

const { fromRow, rowOf } = recordColumns<Run>({
  id: "plain",
  workspaceId: "plain",
  ownerId: "plain",
  rootId: "plain",
  name: "plain",
  joinedName: "plain?",
  hash: "plain",
  label: "plain",
  limitNano: "nano",
  maxRequests: "plain",
  depth: "plain",
  maxDepth: "plain",
  expiresAtMs: "plain",
  degrade: "json?",
  loopGuard: "json?",
  paused: "flag",
  version: "plain",
  creatorUserId: "plain",
  createdAtMs: "plain",
  updatedAtMs: "plain",
  endedAtMs: "plain",
  releasedAtMs: "plain",
  settledNano: "nano",
  settledByokNano: "nano",
  alertedPercent: "plain",
});

/** The spending and requests of a run together with the runs in it. */
export interface RunTotal {
  spentNano: bigint;
  requests: number;
}

/** A query for a page of runs, newest first. */
export interface RunListQuery {
  workspaceId: string;
  /** The key or run whose direct runs are listed; absent lists all. */
  ownerId?: string | undefined;
  /** The key in whose trees the runs are; absent means any. */
  rootId?: string | undefined;
  /** The run that the runs are in, which is one of them; absent means any. */
  withinId?: string | undefined;
  /** The id after which the page begins. */
  beforeId?: string | undefined;
  limit: number;
}

/** Stores runs. Ended ones stay as rows, so that their requests can be explained. */
export class RunStore {
  constructor(private readonly database: Kysely<RunTables>) {}

  /** Returns the runs that are open, that are ending, or whose keys are to be refused by name. */
  async loadOpen(nowMs: number): Promise<Run[]> {
    const rows = await this.database
      .selectFrom("runs")
      .selectAll()
      .where((where) =>
        where.or([where("released_at_ms", "is", null), where("expires_at_ms", ">", nowMs)]),
      )
      .execute();
    return rows.map(fromRow);
  }

  async find(id: string): Promise<Run | undefined> {
    const row = await this.database
      .selectFrom("runs")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async findByHash(hash: string): Promise<Run | undefined> {
    const row = await this.database
      .selectFrom("runs")
      .selectAll()
      .where("hash", "=", hash)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns the newest run that requests of an owner joined by a name, and that is not expired. */
  async findJoined(
    ownerId: string,
    { name, nowMs }: { name: string; nowMs: number },
  ): Promise<Run | undefined> {
    const row = await this.database
      .selectFrom("runs")
      .selectAll()
      .where("owner_id", "=", ownerId)
      .where("joined_name", "=", name)
      .where("expires_at_ms", ">", nowMs)
      .orderBy("id", "desc")
      .limit(1)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async insert(run: Run): Promise<void> {
    await this.database.insertInto("runs").values(rowOf(run)).execute();
  }

  /**
   * Changes a run that has not ended and has this version; undefined where it ended or was changed
   * meanwhile.
   */
  async change(
    { id, version }: Pick<Run, "id" | "version">,
    changes: Partial<Pick<Run, "limitNano" | "version" | "paused" | "alertedPercent">>,
    nowMs: number,
  ): Promise<Run | undefined> {
    const { limitNano, paused, alertedPercent } = changes;
    const row = await this.database
      .updateTable("runs")
      .set({
        ...(limitNano !== undefined && { limit_nano: Number(limitNano) }),
        ...(changes.version !== undefined && { version: changes.version }),
        ...(paused !== undefined && { paused: paused ? 1 : 0 }),
        ...(alertedPercent !== undefined && { alerted_percent: alertedPercent }),
        updated_at_ms: nowMs,
      })
      .where("id", "=", id)
      .where("version", "=", version)
      .where("ended_at_ms", "is", null)
      .returningAll()
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Ends a run and every run in it, and returns those that are not released yet. */
  async end(id: string, nowMs: number): Promise<Run[]> {
    const ids = await this.idsBelow(id);
    await this.database
      .updateTable("runs")
      .set({ ended_at_ms: nowMs, updated_at_ms: nowMs })
      .where("id", "in", ids)
      .where("ended_at_ms", "is", null)
      .execute();
    const rows = await this.database
      .selectFrom("runs")
      .selectAll()
      .where("id", "in", ids)
      .where("released_at_ms", "is", null)
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the ids of the runs that have passed their time and were not ended yet. */
  async expired(nowMs: number): Promise<string[]> {
    const rows = await this.database
      .selectFrom("runs")
      .select("id")
      .where("released_at_ms", "is", null)
      .where("expires_at_ms", "<=", nowMs)
      .where("ended_at_ms", "is", null)
      .limit(100)
      .execute();
    return rows.map(({ id }) => id);
  }

  /**
   * Records that the rest of an ended run's limit went back to its owner, with what it cost in all.
   * Undefined while a run in it is not released, and where it was released before.
   */
  async release(id: string, nowMs: number): Promise<Run | undefined> {
    const [spent, byok] = [
      await this.sumOf("key_spend_hours", id),
      await this.sumOf("key_byok_hours", id),
    ];
    const withInner = (own: number, column: "settled_nano" | "settled_byok_nano") =>
      sql<number>`
        ${own} + coalesce((
          select sum(${sql.ref(`inner_runs.${column}`)}) from runs inner_runs where inner_runs.owner_id = ${id}
        ), 0)`;
    const row = await this.database
      .updateTable("runs")
      .set({
        released_at_ms: nowMs,
        settled_nano: withInner(spent, "settled_nano"),
        settled_byok_nano: withInner(byok, "settled_byok_nano"),
      })
      .where("id", "=", id)
      .where("released_at_ms", "is", null)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("runs as inner_runs")
              .select("inner_runs.id")
              .where("inner_runs.owner_id", "=", id)
              .where("inner_runs.released_at_ms", "is", null),
          ),
        ),
      )
      .returningAll()
      .executeTakeFirst();
    return row && fromRow(row);
  }

  private async sumOf(table: SpendTable, keyId: string): Promise<number> {
    const row = await this.database
      .selectFrom(table)
      .select(({ fn }) => fn.sum<number | bigint | null>("spend_nano").as("spent"))
      .where("key_id", "=", keyId)
      .executeTakeFirst();
    return Number(row?.spent ?? 0);
  }

  /** Returns a page of runs, newest first. */
  async list({
    workspaceId,
    ownerId,
    rootId,
    withinId,
    beforeId,
    limit,
  }: RunListQuery): Promise<Run[]> {
    let query = this.database
      .selectFrom("runs")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (ownerId !== undefined) query = query.where("owner_id", "=", ownerId);
    if (rootId !== undefined) query = query.where("root_id", "=", rootId);
    if (withinId !== undefined)
      query = query.where(
        sql<boolean>`id in (
          with recursive tree(id) as (
            select id from runs where id = ${withinId}
            union all
            select runs.id from runs join tree on runs.owner_id = tree.id
          )
          select id from tree
        )`,
      );
    if (beforeId !== undefined) query = query.where("id", "<", beforeId);
    const rows = await query.orderBy("id", "desc").limit(limit).execute();
    return rows.map(fromRow);
  }

  /** Returns a run and every run in it, oldest first, at most `limit`. */
  async tree(id: string, limit: number): Promise<Run[]> {
    const ids = await this.idsBelow(id);
    const rows = await this.database
      .selectFrom("runs")
      .selectAll()
      .where("id", "in", ids.slice(0, limit))
      .orderBy("id")
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the spending and the requests of runs, each with the runs in it. */
  async totals(ids: readonly string[]): Promise<ReadonlyMap<string, RunTotal>> {
    if (ids.length === 0) return new Map();
    const { rows } = await sql<{ top: string; spent: number | bigint; requests: number | bigint }>`
      select top, coalesce(sum(spend_nano), 0) as spent,
        coalesce(sum(requests), 0) as requests
      from (
        with recursive tree(top, id) as (
          select id, id from runs where id in (${sql.join(ids)})
          union all
          select tree.top, runs.id from runs join tree on runs.owner_id = tree.id
        )
        select top, id from tree
      ) as members left join ${sql.table("key_spend_hours")} as spend on spend.key_id = members.id
      group by top`.execute(this.database);
    return new Map(
      rows.map(({ top, spent, requests }) => [
        top,
        { spentNano: BigInt(spent), requests: Number(requests) },
      ]),
    );
  }

  /** Returns what the open runs of an owner have spent, in nano-USD. */
  async spentByOpenRuns(ownerId: string): Promise<bigint> {
    const { rows } = await sql<{ spent: number | bigint }>`
      select coalesce(sum(spend_nano), 0) as spent from ${sql.table("key_spend_hours")} where key_id in (
        with recursive tree(id) as (
          select id from runs where owner_id = ${ownerId} and released_at_ms is null
          union all
          select runs.id from runs join tree on runs.owner_id = tree.id
        )
        select id from tree
      )`.execute(this.database);
    return BigInt(rows[0]?.spent ?? 0);
  }

  private async idsBelow(id: string): Promise<string[]> {
    const { rows } = await sql<{ id: string }>`
      select id from (
        with recursive tree(id, level) as (
          select id, 0 from runs where id = ${id}
          union all
          select runs.id, tree.level + 1 from runs join tree on runs.owner_id = tree.id
        )
        select id, level from tree
      ) as members order by level, id`.execute(this.database);
    return rows.map((row) => row.id);
  }
}
