import { type Kysely, type QueryExecutorProvider, sql } from "kysely";
import { type IdPrefix, lowestId } from "../../kernel/ids.ts";

/**
 * A Postgres table with a partition for each UTC month. Its column `id` begins with a prefix and
 * the wall time in twelve hexadecimal digits, so that ids order by time and the table's key needs
 * no other column.
 */
export interface MonthlyTable {
  name: string;
  idPrefix: IdPrefix;
}

/** The generation records. */
export const monthlyGenerations: MonthlyTable = { name: "generations", idPrefix: "gen" };

/** A partition and its ids: from the first (absent: any) to before `toId`. */
interface Partition {
  name: string;
  fromId: string | undefined;
  toId: string;
}

/** The number of months that are created ahead of the current one. */
const monthsAhead = 2;

/**
 * Milliseconds that a change of partitions waits for queries; everything behind it waits during
 * that time.
 */
const lockTimeoutMs = 1_000;

/** Returns the name of the default partition, for rows without a month of their own. */
const restOf = ({ name }: MonthlyTable): string => `${name}_rest`;

/** Returns the beginning of the UTC month that comes this many months after that of a moment. */
function monthStartMs(atMs: number, monthsLater: number): number {
  const date = new Date(atMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsLater, 1);
}

/** Returns the partition of the month that begins at a moment. */
function monthOf(table: MonthlyTable, startMs: number): Partition & { fromId: string } {
  const [year, month] = new Date(startMs).toISOString().split("-");
  return {
    name: `${table.name}_${year}_${month}`,
    fromId: lowestId(table.idPrefix, startMs),
    toId: lowestId(table.idPrefix, monthStartMs(startMs, 1)),
  };
}

const boundPattern = /^FOR VALUES FROM \((?:MINVALUE|'(\w+)')\) TO \('(\w+)'\)$/;

/** Returns the partitions of a table except the default one, oldest first. */
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

/** Creates a month's partition, and moves the month's rows that came before it existed into it. */
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

/** Returns the current month and the coming ones, as far as they have no partition. */
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
 * Turns a table into a partitioned one, in the transaction of a migration. Its rows are not copied:
 * all of them become one partition, up to the end of the current month. Other gateways continue to
 * use the table by its name.
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
    /** The columns of each index, by its name. */
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

/** Creates and drops monthly partitions of a table while gateways write to it. */
export class MonthPartitions<Schema> {
  readonly #database: Kysely<Schema>;
  readonly #table: MonthlyTable;

  constructor(database: Kysely<Schema>, table: MonthlyTable) {
    this.#database = database;
    this.#table = table;
  }

  /**
   * Creates the partitions of a wall time's month and the next two. Throws where queries block the
   * change.
   */
  async prepare(nowMs: number): Promise<void> {
    if ((await missingMonths(this.#database, this.#table, nowMs)).length === 0) return;
    await this.#change(async (transaction) => {
      // One gateway at a time, and no commit meanwhile: the server would refuse a row that is being
      // written to the default partition. Readers are not blocked.
      await sql`lock table ${sql.table(this.#table.name)} in share row exclusive mode`.execute(
        transaction,
      );
      await makeMonths(transaction, this.#table, nowMs);
    });
  }

  /**
   * Drops the months that ended before a wall time, oldest first. Throws where queries block one;
   * those before it are dropped then.
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
