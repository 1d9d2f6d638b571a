import { expect, test } from "bun:test";
import { sql } from "kysely";
import { Client } from "pg";
import { FakeClock } from "../../test/support/fake-clock.ts";
import {
  openInsightStorage,
  recordOf,
  settledUnit,
  type InsightTables,
} from "../../test/support/generation-records.ts";
import { freshDatabase } from "../../test/support/postgres.ts";
import { dayMs } from "../platform/kernel/clock.ts";
import { customers } from "../platform/storage/migrations/accounts/2026-11-28-customers.ts";
import { firstSchema } from "../platform/storage/migrations/2026-11-23-first-schema.ts";
import { usageGrowths } from "../platform/storage/migrations/2026-11-25-growths-of-usage.ts";
import { monthsBy } from "../platform/storage/migrations/2026-11-25-months.ts";
import { passedCaps } from "../platform/storage/migrations/2026-11-28-passed-caps.ts";
import { senderDays } from "../platform/storage/migrations/2026-11-28-sender-days.ts";
import {
  MonthPartitions,
  monthlyGenerations,
} from "../platform/storage/postgres/month-partitions.ts";
import type { Storage } from "../platform/storage/storage.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import { isUniqueViolation } from "../platform/storage/storage-error.ts";
import type { GenerationRecord } from "./generation-record.ts";
import { GenerationStore } from "./generation-store.ts";
import { JobRegistry } from "./health/job-registry.ts";
import { Retention } from "./retention.ts";
import { GenerationSizes } from "./generation-sizes.ts";
import { LogBudget } from "./log-budget.ts";
import { UsageStore } from "./usage/usage-store.ts";

/** The middle of the month under way (November 2026), and of those before and after it. */
const middleOf = (monthsLater: number): number => Date.UTC(2026, 10 + monthsLater, 15, 12);

/** The release before, for this test: all that its commits need, and a table of records in one. */
const migrationsBefore = [firstSchema, usageGrowths, customers, passedCaps, senderDays];
const migrations = [
  ...migrationsBefore,
  {
    ...monthsBy(new FakeClock(middleOf(0))),
    name: `2026-11-29-months additive to ${senderDays.name.split(" ")[0]}`,
  },
];
/** However busy the machine is, no commit is refused for that. */
const commitTimeoutMs = 60_000;

const open = (url: string): Promise<Storage<InsightTables>> =>
  openInsightStorage(url, { migrations, commitTimeoutMs });

/** The name of the partition of a month. */
const nameOf = (monthsLater: number): string =>
  `generations_${new Date(middleOf(monthsLater)).toISOString().slice(0, 7).replace("-", "_")}`;

const recordIn = (monthsLater: number): GenerationRecord =>
  recordOf({ createdAtMs: middleOf(monthsLater), workspaceId: "ws_a" });

const monthsOf = ({ database }: Storage<InsightTables>) =>
  new MonthPartitions(database, monthlyGenerations);

/** How many records each partition has, by its name. */
async function countsIn({ database }: Storage<InsightTables>): Promise<Record<string, number>> {
  const { rows } = await sql<{ name: string; records: number | null }>`
    select relid::regclass::text as name, records from pg_partition_tree('generations')
      left join (select tableoid, count(*) as records from generations group by 1) as held on tableoid = relid
    where isleaf`.execute(database);
  return Object.fromEntries(rows.map(({ name, records }) => [name, records ?? 0]));
}

const settle = ({ commits }: Storage<InsightTables>, records: readonly GenerationRecord[]) =>
  Promise.all(records.map((record) => commits.commit(settledUnit(record))));

const readIds = async ({ database }: Storage<InsightTables>): Promise<string[]> =>
  (await database.selectFrom("generations").select("id").orderBy("id").execute()).map(
    ({ id }) => id,
  );

const idsOf = (records: readonly GenerationRecord[]): string[] =>
  records.map(({ id }) => id).sort();

function openRetention(
  storage: Storage<InsightTables>,
  options: { nowMs: number; budgetBytes?: number; months?: MonthPartitions<InsightTables> },
) {
  const parts = { ...storage, database: withTables(storage.database) };
  const clock = new FakeClock(options.nowMs);
  const heldUp: unknown[] = [];
  const retention = new Retention({
    generations: new GenerationStore(parts),
    usage: new UsageStore(parts),
    jobs: new JobRegistry(clock),
    clock,
    keepDays: 30,
    budget: new LogBudget({
      sizes: new GenerationSizes(parts),
      budgetBytes: options.budgetBytes ?? 1e10,
    }),
    workspaceIds: () => ["ws_a"],
    onError: () => undefined,
    onMonthsHeldUp: (error) => heldUp.push(error),
    onOverBudget: () => undefined,
    months: options.months ?? monthsOf(storage),
  });
  return { purge: () => retention.purge(), heldUp };
}

test("the table of records becomes partitions while a gateway of the previous release reads and writes", async () => {
  const url = await freshDatabase();
  const several = { severalGateways: true, commitTimeoutMs };
  const old = await openInsightStorage(url, {
    ...several,
    migrations: migrationsBefore,
  });
  const records = [-14, -2, -1, 0, 1, 5].map(recordIn);
  await settle(old, records);
  const underWay = Array.from({ length: 40 }, () => recordIn(0));
  const writing = settle(old, underWay);
  const migrated = await openInsightStorage(url, { ...several, migrations });
  await writing;
  const [byOld, byNew] = [[recordIn(-3), recordIn(0), recordIn(2)], [recordIn(0)]];
  await settle(old, byOld);
  await settle(migrated, byNew);
  const later = [...byOld, ...byNew];
  const all = [...records, ...underWay, ...later];
  expect(await readIds(old)).toEqual(idsOf(all));
  expect(await readIds(migrated)).toEqual(idsOf(all));
  // A commit that is repeated is recognized in each partition, whichever release repeats it.
  for (const storage of [old, migrated]) {
    for (const record of [...records, ...later]) {
      const refused = await storage.commits.commit(settledUnit(record)).catch((error) => error);
      expect(isUniqueViolation(refused)).toBe(true);
    }
  }
  expect(await countsIn(migrated)).toEqual({
    generations_before: 4 + 40 + 3,
    [nameOf(1)]: 1,
    [nameOf(2)]: 1,
    generations_rest: 1,
  });
  await Promise.all([old.close(), migrated.close()]);
  // The release before starts on it, too.
  const again = await openInsightStorage(url, { migrations: migrationsBefore });
  expect(await readIds(again)).toEqual(idsOf(all));
  await again.close();
}, 240_000);

test("an empty table has partitions for three months; other rows stay in the rest until theirs exists", async () => {
  const storage = await open(await freshDatabase());
  const records = [-8, 0, 3, 4].map(recordIn);
  await settle(storage, records);
  const three = { [nameOf(0)]: 1, [nameOf(1)]: 0, [nameOf(2)]: 0 };
  expect(await countsIn(storage)).toEqual({ ...three, generations_rest: 3 });
  const months = monthsOf(storage);
  await Promise.all([months.prepare(middleOf(1)), months.prepare(middleOf(2))]);
  const five = { ...three, [nameOf(3)]: 1, [nameOf(4)]: 1 };
  expect(await countsIn(storage)).toEqual({ ...five, generations_rest: 1 });
  await months.prepare(middleOf(2));
  expect(await readIds(storage)).toEqual(idsOf(records));
  // A record that is asked for by its id is looked for in one partition.
  const { rows } = await sql<Record<string, string>>`
    explain select * from generations where workspace_id = 'ws_a' and id = ${sql.lit(records[3]?.id)}`.execute(
    storage.database,
  );
  const plan = rows.flatMap((row) => Object.values(row)).join("\n");
  expect(plan.match(/\bgenerations_(\d{4}_\d\d|rest)(?!_pkey)\b/g)?.map(String)).toContain(
    nameOf(4),
  );
  expect(plan).not.toContain(nameOf(3));
  expect(plan).not.toContain("generations_rest");
  await storage.close();
}, 240_000);

test("creating a month refuses no record that is committed for it at the same time", async () => {
  const storage = await open(await freshDatabase());
  const months = monthsOf(storage);
  const settled: GenerationRecord[] = [];
  let isMade = false;
  const settling = Array.from({ length: 4 }, async () => {
    while (!isMade) {
      const records = [3, 4, 5, 6].map(recordIn);
      await settle(storage, records);
      settled.push(...records);
    }
  });
  for (const later of [1, 2, 3, 4]) await months.prepare(middleOf(later));
  isMade = true;
  await Promise.all(settling);
  expect(await readIds(storage)).toEqual(idsOf(settled));
  expect(await countsIn(storage)).toHaveProperty("generations_rest", 0);
  await storage.close();
}, 240_000);

test("retention drops ended months, and deletes the old rows of the current one and late rows", async () => {
  const storage = await open(await freshDatabase());
  const months = monthsOf(storage);
  const nowMs = middleOf(2);
  await months.prepare(nowMs);
  // Kept for thirty days from the middle of the month after next: the next month is cut.
  const cutMs = nowMs - 30 * dayMs;
  const gone = [recordIn(-9), recordIn(0), recordIn(0)];
  const cut = recordOf({ createdAtMs: cutMs - 1, workspaceId: "ws_a" });
  const kept = [
    recordOf({ createdAtMs: cutMs + 1, workspaceId: "ws_a" }),
    recordIn(2),
    recordIn(3),
  ];
  await settle(storage, [...gone, cut, ...kept]);
  const { purge, heldUp } = openRetention(storage, { nowMs });
  await purge();
  expect(heldUp).toEqual([]);
  expect(await readIds(storage)).toEqual(idsOf(kept));
  const left = { [nameOf(1)]: 1, [nameOf(2)]: 1, [nameOf(3)]: 1, [nameOf(4)]: 0 };
  expect(await countsIn(storage)).toEqual({ ...left, generations_rest: 0 });
  // One that comes late finds a place, and goes with the next purge.
  await settle(storage, [recordIn(0)]);
  expect(await countsIn(storage)).toEqual({ ...left, generations_rest: 1 });
  await purge();
  expect(await readIds(storage)).toEqual(idsOf(kept));
  // The budget drops months as well.
  await openRetention(storage, { nowMs, budgetBytes: 1 }).purge();
  expect(await countsIn(storage)).toEqual({
    [nameOf(3)]: 0,
    [nameOf(4)]: 0,
    generations_rest: 0,
  });
  await storage.close();
}, 240_000);

test("a month locked by a query is deleted row by row, and dropped the next time", async () => {
  const url = await freshDatabase();
  const storage = await open(url);
  await settle(storage, [recordIn(0)]);
  await monthsOf(storage).prepare(middleOf(2));
  const { purge, heldUp } = openRetention(storage, { nowMs: middleOf(2) });
  const reader = new Client({ connectionString: url });
  await reader.connect();
  await reader.query("begin; select id from generations");
  await purge();
  expect(heldUp.map(String)).toEqual([expect.stringContaining("lock timeout")]);
  await reader.query("commit");
  await reader.end();
  expect(await readIds(storage)).toEqual([]);
  expect(await countsIn(storage)).toHaveProperty(nameOf(0), 0);
  await purge();
  expect(await countsIn(storage)).not.toHaveProperty(nameOf(0));
  await storage.close();
}, 240_000);
