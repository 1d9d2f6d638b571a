import { type Kysely, type QueryExecutorProvider, sql } from "kysely";
import { type IdPrefix, lowestId } from "../../kernel/ids.ts";

/**
 * A table of Postgres whose rows are kept in a partition for each UTC month. Its column `id` begins
 * with a prefix and the wall time in twelve hexadecimal digits, so ids order by time and the key of
 * the table needs no other column.
 */
export interface MonthlyTable {
  name: string;
  idPrefix: IdPrefix;
}

/** The generation records. */
export const monthlyGenerations: MonthlyTable = { name: "generations", idPrefix: "gen" };

/** A partition with the ids that it holds: from the first (absent: any) to before `toId`. */
interface Partition {
  name: string;
  fromId: string | undefined;
  toId: string;
}

/** How many months are made ahead of the one that is under way. */
const monthsAhead = 2;

/** How long a change of partitions waits for queries, while which everything behind it waits too. */
const lockTimeoutMs = 1_000;

/** The partition of rows that no month is there for. */
const restOf = ({ name }: MonthlyTable): string => `${name}_rest`;

/** When the UTC month begins that comes so many months after the one of a moment. */
function monthStartMs(atMs: number, monthsLater: number): number {
  const date = new Date(atMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsLater, 1);
}

/** The partition of the month that begins at a moment. */
function monthOf(table: MonthlyTable, startMs: number): Partition & { fromId: string } {
  const [year, month] = new Date(startMs).toISOString().split("-");
  return {
    name: `${table.name}_${year}_${month}`,
    fromId: lowestId(table.idPrefix, startMs),
    toId: lowestId(table.idPrefix, monthStartMs(startMs, 1)),
  };
}

const boundPattern = /^FOR VALUES FROM \((?:MINVALUE|'(\w+)')\) TO \('(\w+)'\)$/;

/** The partitions of a table but that of the rest, oldest first. */
async function partitionsOf(
  database: QueryExecutorProvider,
  { name }: MonthlyTable,
): Promise<Partition[]> {
  const { rows } = await sql<{ name: string; bound: string }>`
    select relname as name, pg_get_expr(relpartbound, oid) as bound from pg_class
    where oid in (select inhrelid from pg_inherits where inhparent = to_regclass(${name}))`.execute(
    database,
  );
  return rows
    .flatMap((row) => {
      const [, fromId, toId] = boundPattern.exec(row.bound) ?? [];
      return toId === undefined ? [] : [{ name: row.name, fromId, toId }];
    })
    .sort((one, other) => (one.toId < other.toId ? -1 : 1));
}

/** Makes a month, into which rows of it move that came before it was there. */
async function makeMonth(
  transaction: QueryExecutorProvider,
  table: MonthlyTable,
  { name, fromId, toId }: Partition & { fromId: string },
): Promise<void> {
  const [month, rest, parent] = [sql.table(name), sql.table(restOf(table)), sql.table(table.name)];
  const run = async (query: ReturnType<typeof sql>) => void (await query.execute(transaction));
  await run(sql`create table ${month} (like ${parent} including all)`);
  await run(sql`lock table ${rest} in access exclusive mode`);
  await run(sql`with moved as (
      delete from ${rest} where id >= ${fromId} and id < ${toId} returning *
    ) insert into ${month} select * from moved`);
  await run(
    sql`alter table ${parent} attach partition ${month} for values from (${sql.lit(fromId)}) to (${sql.lit(toId)})`,
  );
}

/** The month under way and those that come, as far as they are not there. */
async function missingMonths(
  database: QueryExecutorProvider,
  table: MonthlyTable,
  nowMs: number,
): Promise<ReturnType<typeof monthOf>[]> {
  const there = await partitionsOf(database, table);
  return Array.from({ length: monthsAhead + 1 }, (_, later) =>
    monthOf(table, monthStartMs(nowMs, later)),
  ).filter(
    (month) => !there.some(({ fromId = "", toId }) => fromId < month.toId && month.fromId < toId),
  );
}

async function makeMonths(
  transaction: QueryExecutorProvider,
  table: MonthlyTable,
  nowMs: number,
): Promise<void> {
  for (const month of await missingMonths(transaction, table, nowMs))
    await makeMonth(transaction, table, month);
}

/**
 * Turns a table into one with partitions, in the transaction of a migration. What it holds is not
 * copied: all of it becomes one partition, up to the end of the month under way. Other gateways go
 * on with the table by its name.
 */
export async function partitionByMonth(
  transaction: QueryExecutorProvider,
  table: MonthlyTable,
  {
    nowMs,
    primaryKey,
    indexes,
  }: {
    nowMs: number;
    primaryKey: string;
    /** What each index is on, by its name. */
    indexes: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const { name } = table;
  const before = `${name}_before`;
  const run = async (text: string) => (await sql.raw(text).execute(transaction)).rows;
  await run(`lock table ${name} in access exclusive mode`);
  await run(`alter table ${name} rename to ${before}`);
  await run(`alter index ${name}_pkey rename to ${before}_pkey`);
  for (const index of Object.keys(indexes))
    await run(`alter index ${index} rename to ${index}_before`);
  await run(
    `create table ${name} (like ${before} including defaults, primary key (${primaryKey})) partition by range (id)`,
  );
  for (const [index, definition] of Object.entries(indexes))
    await run(`create index ${index} on ${name} ${definition}`);
  await run(`create table ${restOf(table)} partition of ${name} default`);
  const [filled] = await run(`select 1 from ${before} limit 1`);
  if (filled === undefined) await run(`drop table ${before}`);
  else {
    const endId = lowestId(table.idPrefix, monthStartMs(nowMs, 1));
    await run(
      `with moved as (delete from ${before} where id >= '${endId}' returning *) insert into ${name} select * from moved`,
    );
    await run(
      `alter table ${name} attach partition ${before} for values from (minvalue) to ('${endId}')`,
    );
  }
  await makeMonths(transaction, table, nowMs);
}

/** Makes and drops the months of a table while gateways write to it. */
export class MonthPartitions<Schema> {
  readonly #database: Kysely<Schema>;
  readonly #table: MonthlyTable;

  constructor(database: Kysely<Schema>, table: MonthlyTable) {
    this.#database = database;
    this.#table = table;
  }

  /** Makes the month of a wall time and the next two. Throws where queries hold the table up. */
  async prepare(nowMs: number): Promise<void> {
    if ((await missingMonths(this.#database, this.#table, nowMs)).length === 0) return;
    await this.#change(async (transaction) => {
      // One gateway at a time, and no commit meanwhile: the server would refuse a row that it was
      // about to put into the rest. What only reads goes on.
      await sql`lock table ${sql.table(this.#table.name)} in share row exclusive mode`.execute(
        transaction,
      );
      await makeMonths(transaction, this.#table, nowMs);
    });
  }

  /**
   * Drops the months that have ended before a wall time, oldest first. Throws where queries hold
   * one up; those before it are gone then.
   */
  async dropBefore(beforeMs: number): Promise<void> {
    const oldestKept = lowestId(this.#table.idPrefix, beforeMs);
    for (const { name, toId } of await partitionsOf(this.#database, this.#table)) {
      if (toId > oldestKept) return;
      await this.#change(async (transaction) => {
        // Absent where another gateway was faster.
        await sql`drop table if exists ${sql.table(name)}`.execute(transaction);
      });
    }
  }

  #change(work: (transaction: QueryExecutorProvider) => Promise<void>): Promise<void> {
    return this.#database.transaction().execute(async (transaction) => {
      await sql.raw(`set local lock_timeout = ${lockTimeoutMs}`).execute(transaction);
      await work(transaction);
    });
  }
}
