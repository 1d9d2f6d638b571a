import { Database, type SQLQueryBindings } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CompiledQuery, sql } from "kysely";
import { openInsightStorage, type InsightTables } from "../../test/support/generation-records.ts";
import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import type { Storage } from "../platform/storage/storage.ts";
import {
  GenerationSearch,
  type GenerationFilter,
  type GenerationRange,
} from "./generation-search.ts";
import { lowestIdAt } from "./generation-record.ts";
import { NetworkStore } from "./network-store.ts";
import { sumsSql, UsageStore, type UsageQuery } from "./usage/usage-store.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-bounded-"));
const path = join(root, "many.db");
const day = 20_000;
const nowMs = day * dayMs + 12 * hourMs;
let storage: Storage<InsightTables>;

/** The days without their providers, as settlements count them, too. */
const withoutProviders = (workspaces: string) =>
  sql`insert into usage_key_days
  select workspace_id, day, key_id, model, sum(requests), sum(errors), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens),
    sum(reasoning_tokens), sum(cost_nano)
  from ${sql.table("usage_days")} where workspace_id like ${workspaces} group by 1, 2, 3, 4`.execute(
    storage.database,
  );

/**
 * Rows in the big tables: 120,000 days and 60,000 hours of usage, 40,000 days of the whole service,
 * 60,000 records.
 */
beforeAll(async () => {
  storage = await openInsightStorage(`sqlite:${path}`);
  const { database } = storage;
  const series = (count: number) =>
    sql`(with recursive n(i) as (select 0 union all select i + 1 from n where i < ${count - 1}) select i from n)`;
  const sums = sql`1, 0, 10, 5, 2, 1, 1000`;
  await sql`insert into usage_days select 'ws_' || (i % 20), ${day} - i / 400, 'key_' || (i / 20 % 4), 'm/' || (i / 80 % 5), 'p', ${sums}
    from ${series(120_000)}`.execute(database);
  await withoutProviders("ws_%");
  await sql`insert into usage_hours select 'ws_' || (i % 20), ${day * 24} - i / 100, 'key_' || (i / 20 % 5), 'm', 'p', ${sums}
    from ${series(60_000)}`.execute(database);
  await sql`insert into network_days select ${day} - i / 400, 'm/' || (i % 400), 'p', ${sums}, 1, 0
    from ${series(40_000)}`.execute(database);
  await sql`insert into network_hours select ${day * 24} - i, 1, 15 from ${series(20_000)}`.execute(
    database,
  );
  await sql`insert into generations
    select 'gen_' || printf('%012x', ${nowMs} - i * 1000) || printf('%020x', i), ${nowMs} - i * 1000, 'ws_' || (i % 20), 'key', 'chat',
      'm', 'm', 'p', 'm', null, 'completed', 'stop', 0, 10, 5, 1000, 40, null, '{}' from ${series(60_000)}`.execute(
    database,
  );
}, 240_000);
afterAll(async () => {
  await storage.close();
  rmSync(root, { recursive: true, force: true });
});

const parts = () => ({ database: storage.database, commits: storage.commits, kind: storage.kind });
const usageOf = (changes: Partial<UsageQuery>): UsageQuery => ({
  workspaceId: "ws_1",
  fromMs: nowMs - 30 * dayMs,
  toMs: nowMs,
  interval: "day",
  groupBy: [],
  ...changes,
});

const every = (filter: GenerationFilter): GenerationRange => ({
  workspaceId: "ws_1",
  fromMs: 0,
  toMs: nowMs,
  filter,
});
const wholeRange = { low: lowestIdAt(0), end: lowestIdAt(nowMs) };

/** Everything that analytics asks the database. */
const queries: Record<string, () => CompiledQuery> = {
  "usage by day": () => sumsSql(usageOf({})).compile(storage.database),
  "usage by day, model and key": () =>
    sumsSql(usageOf({ groupBy: ["model", "key_id"] })).compile(storage.database),
  "usage by day and provider": () =>
    sumsSql(usageOf({ groupBy: ["provider"] })).compile(storage.database),
  "usage by hour": () =>
    sumsSql(usageOf({ interval: "hour", groupBy: ["provider"] })).compile(storage.database),
  "a page of generations": () =>
    new GenerationSearch(parts())
      .stepSql(every({}), { ...wholeRange, limit: 101 })
      .compile(storage.database),
  "generations by key and app": () =>
    new GenerationSearch(parts())
      .stepSql(every({ keyIds: ["key"], appTitle: "app" }), { ...wholeRange, limit: 101 })
      .compile(storage.database),
  "the size of a step": () =>
    new GenerationSearch(parts())
      .stepSizeSql(every({ keyIds: ["key"] }), { ...wholeRange, rows: 100 })
      .compile(storage.database),
  "hours of the whole service": () => new NetworkStore(parts()).hoursQuery(day * 24 - 23).compile(),
  "days of the whole service": () => new NetworkStore(parts()).daysQuery(day - 29).compile(),
  "models of the whole service": () => new NetworkStore(parts()).modelsQuery(day - 29).compile(),
};

/** How SQLite would go about a query. */
function planOf({ sql: text, parameters }: CompiledQuery): string[] {
  // On a connection of its own: an explained statement holds its connection at the rows of that
  // moment.
  const connection = new Database(path, { readonly: true });
  const details = (
    connection.query(`explain query plan ${text}`).all(...(parameters as SQLQueryBindings[])) as {
      detail: string;
    }[]
  ).map(({ detail }) => detail);
  connection.close();
  return details;
}

test.each(Object.entries(queries))(
  "%s reads a range of an index and never a whole table",
  (_, query) => {
    const details = planOf(query());
    const reads =
      /^SEARCH (usage_days|usage_key_days|usage_hours|network_days|network_hours|generations) USING/;
    expect(details.some((detail) => reads.test(detail))).toBe(true);
    expect(details.filter((detail) => /^SCAN (usage_|network_|generations)/.test(detail))).toEqual(
      [],
    );
  },
);

test("usage of a range of days contains only these days", async () => {
  const lines = await new UsageStore(parts()).sums(
    usageOf({ fromMs: (day - 9) * dayMs, toMs: (day + 1) * dayMs }),
  );
  expect(lines?.map(({ requests, costNanoUsd }) => `${requests} ${costNanoUsd}`)).toEqual(
    Array.from({ length: 10 }, () => "20 20000"),
  );
});

test("unfinished generations are found by their partial index", () => {
  const search = new GenerationSearch(parts());
  const range = every({ statuses: ["failed", "cut"] });
  const uses = /^SEARCH generations USING (COVERING )?INDEX generations_unfinished/;
  const asked = [
    search.stepSql(range, { ...wholeRange, limit: 101 }),
    search.stepSizeSql(range, { ...wholeRange, rows: 100 }),
  ];
  for (const query of asked)
    expect(planOf(query.compile(storage.database)).some((detail) => uses.test(detail))).toBe(true);
});

test("a list filtered by status reads only the records of its page", () => {
  const search = new GenerationSearch(parts());
  const range = every({ statuses: ["failed"] });
  const reads = [
    search.stepSql(range, { ...wholeRange, limit: 101 }),
    search.stepSizeSql(range, { ...wholeRange, rows: 100 }),
  ].flatMap((query) =>
    planOf(query.compile(storage.database)).filter((detail) => /generations/.test(detail)),
  );
  const [page, ...others] = reads;
  expect(page).toMatch(/^SEARCH generations USING PRIMARY KEY \(workspace_id=\? AND id=\?\)/);
  expect(others).toHaveLength(2);
  for (const detail of others)
    expect(detail).toMatch(/^SEARCH generations USING COVERING INDEX generations_unfinished/);
});

test("a page of generations lists the newest of its workspace", async () => {
  const { records, next } = await new GenerationSearch(parts()).page({
    ...every({}),
    toMs: nowMs + 1,
    limit: 100,
  });
  expect(records.map(({ createdAtMs }) => createdAtMs)).toEqual(
    Array.from({ length: 100 }, (_, index) => nowMs - (index * 20 + 1) * 1_000),
  );
  expect(next).toBe(records.at(-1)?.id);
});

test("a query that would read or return too much is refused, not truncated", async () => {
  const { database } = storage;
  await sql`insert into usage_days
    with recursive n(i) as (select 0 union all select i + 1 from n where i < 100000)
    select 'ws_big', ${day} - i % 300, 'key_' || i, 'm', 'p', 1, 0, 1, 1, 0, 0, 1 from n`.execute(
    database,
  );
  await withoutProviders("ws_big");
  const usage = new UsageStore(parts());
  const big = { workspaceId: "ws_big", toMs: (day + 1) * dayMs };
  expect(await usage.sums(usageOf({ ...big, fromMs: 0 }))).toBeUndefined();
  expect(
    await usage.sums(usageOf({ ...big, fromMs: (day - 99) * dayMs, groupBy: ["key_id"] })),
  ).toBeUndefined();
  const lines = await usage.sums(usageOf({ ...big, fromMs: (day - 99) * dayMs }));
  expect(lines).toHaveLength(100);
  const inRange = Array.from({ length: 100_001 }, (_, index) => index).filter(
    (index) => index % 300 < 100,
  );
  expect(lines?.reduce((sum, { requests }) => sum + requests, 0)).toBe(inRange.length);
});

test("deleteHoursBefore deletes the expired hours of the given workspace only", async () => {
  const usage = new UsageStore(parts());
  const keptHour = day * 24 - 99;
  await usage.deleteHoursBefore("ws_1", keptHour * hourMs);
  const oldest = await storage.database
    .selectFrom("usage_hours")
    .select(({ fn }) => ["workspace_id", fn.min<number>("hour").as("hour")])
    .where("workspace_id", "in", ["ws_1", "ws_2"])
    .groupBy("workspace_id")
    .orderBy("workspace_id")
    .execute();
  expect(oldest).toEqual([
    { workspace_id: "ws_1", hour: keptHour },
    { workspace_id: "ws_2", hour: day * 24 - 599 },
  ]);
  await usage.deleteNetworkHoursBefore(keptHour * hourMs);
  expect(await storage.database.selectFrom("network_hours").selectAll().execute()).toHaveLength(
    100,
  );
});
