import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { FakeClock } from "../../test/support/fake-clock.ts";
import {
  openInsightStorage,
  recordOf,
  settledUnit,
  type InsightTables,
} from "../../test/support/generation-records.ts";
import { migratedDatabase } from "../../test/support/postgres.ts";
import { dayMs } from "../platform/kernel/clock.ts";
import type { Storage } from "../platform/storage/storage.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import type { GenerationRecord } from "./generation-record.ts";
import { GenerationStore } from "./generation-store.ts";
import { Retention } from "./retention.ts";
import { GenerationSizes } from "./generation-sizes.ts";
import { LogBudget, type LogExcess } from "./log-budget.ts";
import { JobRegistry } from "./health/job-registry.ts";
import { UsageStore } from "./usage/usage-store.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-retention-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let databaseCount = 0;
const engines: [string, () => Promise<string>][] = [
  ["SQLite", async () => `sqlite:${join(root, `${++databaseCount}.db`)}`],
  ["Postgres", migratedDatabase],
];

const { signal } = new AbortController();
const everything = { fromMs: 0, toMs: 16 ** 12 - 1, digits: 6, signal };

/** A retention of thirty days over a storage of its own, with what it told. */
function open(storage: Storage<InsightTables>, budgetBytes = 1e10) {
  const clock = new FakeClock();
  const parts = {
    database: withTables(storage.database),
    commits: storage.commits,
    kind: storage.kind,
  };
  const sizes = new GenerationSizes(parts);
  const told: LogExcess[] = [];
  const retention = new Retention({
    generations: new GenerationStore(parts),
    usage: new UsageStore(parts),
    jobs: new JobRegistry(clock),
    clock,
    keepDays: 30,
    budget: new LogBudget({ sizes, budgetBytes }),
    workspaceIds: () => ["ws_a", "ws_b"],
    onError: () => undefined,
    onOverBudget: (excess) => told.push(excess),
  });
  return {
    retention,
    sizes,
    told,
    nowMs: clock.nowMs(),
    measure: async () => sizes.slices({ ...everything, workspaceIds: await sizes.workspaceIds() }),
    ids: async () =>
      (await storage.database.selectFrom("generations").select("id").orderBy("id").execute()).map(
        ({ id }) => id,
      ),
    async settle(records: readonly GenerationRecord[]): Promise<void> {
      await Promise.all(records.map((record) => storage.commits.commit(settledUnit(record))));
    },
  };
}

const record = (
  workspaceId: string,
  createdAtMs: number,
  changes: Partial<GenerationRecord> = {},
) => recordOf({ workspaceId, createdAtMs, ...changes });
const idsOf = (records: readonly GenerationRecord[]): string[] =>
  records.map(({ id }) => id).sort();

describe.each(engines)("retention on %s", (_, freshUrl) => {
  test("deletes records older than the retention in steps, and keeps others and other workspaces'", async () => {
    const storage = await openInsightStorage(await freshUrl());
    const { retention, settle, ids, nowMs } = open(storage);
    const old = Array.from({ length: 2_500 }, (_, index) =>
      record("ws_a", nowMs - 31 * dayMs - index),
    );
    const kept = [record("ws_a", nowMs - 29 * dayMs), record("ws_c", nowMs - 99 * dayMs)];
    await settle([...old, ...kept]);
    await retention.purge();
    expect(await ids()).toEqual(idsOf(kept));
    await storage.close();
  });

  test("deletes the oldest records of all workspaces until the rest fits the budget, and reports once", async () => {
    const storage = await openInsightStorage(await freshUrl());
    const { retention, settle, ids, measure, told, nowMs } = open(storage, 100_000);
    const bytes = async () => (await measure()).reduce((sum, slice) => sum + slice.bytes, 0);
    // Within three hours, of three workspaces, one of which the ledger does not know.
    const records = Array.from({ length: 600 }, (_, index) =>
      record(`ws_${"abc"[index % 3]}`, nowMs - (600 - index) * 18_000),
    );
    await settle(records);
    const mean = (await bytes()) / 600;
    const counters = await storage.database
      .selectFrom("usage_days")
      .selectAll()
      .orderBy("workspace_id")
      .execute();
    await retention.purge();
    const room = Math.floor(100_000 / mean);
    expect(await ids()).toEqual(idsOf(records.slice(-room)));
    expect(await bytes()).toBeLessThanOrEqual(100_000);
    expect(told.map(({ rows, beforeMs }) => [rows, beforeMs])).toEqual([
      [600 - room, (records.at(-room - 1)?.createdAtMs ?? 0) + 1],
    ]);
    expect(
      await storage.database.selectFrom("usage_days").selectAll().orderBy("workspace_id").execute(),
    ).toEqual(counters);
    // Nothing more to do; then as many come as there were, and as many of the oldest go.
    await retention.purge();
    expect(await ids()).toHaveLength(room);
    const later = Array.from({ length: 30 }, (_, index) => record("ws_b", nowMs + index));
    await settle(later);
    await retention.purge();
    expect(await ids()).toEqual(idsOf([...records, ...later].slice(-room)));
    expect(told).toHaveLength(1);
    await storage.close();
  });

  test("deletes no records that fit, and never touches the ledger or stored responses", async () => {
    const storage = await openInsightStorage(await freshUrl());
    const { database } = storage;
    const records = Array.from({ length: 50 }, (_, index) =>
      record("ws_a", Date.UTC(2026, 10, 1) + (index * dayMs) / 4),
    );
    await sql`insert into transfers values ('txn_1', 'a', 'b', 5, 'charge', null, 1)`.execute(
      database,
    );
    await sql`insert into stored_responses (id, workspace_id, key_id, created_at_ms, status, model,
      background, size_bytes, record, input_items)
      values ('resp_1', 'ws_a', 'key', 1, 'completed', 'm', 0, 2, '{}', '[]')`.execute(database);
    const wide = open(storage);
    await wide.settle(records);
    await wide.retention.purge();
    expect([await wide.ids(), wide.told]).toEqual([idsOf(records), []]);
    const narrow = open(storage, 1);
    await narrow.retention.purge();
    expect([await narrow.ids(), narrow.told.map(({ rows }) => rows)]).toEqual([[], [50]]);
    const {
      rows: [kept],
    } = await sql<{ kept: number }>`select
      (select count(*) from transfers) + (select count(*) from stored_responses) as kept`.execute(
      database,
    );
    expect(Number(kept?.kept)).toBe(2);
    await storage.close();
  });

  test.each([
    ["short", ""],
    ["long", "x".repeat(900)],
  ])("measures the size of %s records within a quarter", async (_, appTitle) => {
    const storage = await openInsightStorage(await freshUrl());
    const { settle, sizes, measure } = open(storage);
    const detail = {
      usage: { input: 10, output: 20 },
      priceVersion: "prv_1",
      price: { prompt: "0.5" },
      holdNanoUsd: "1234",
      appTitle,
    };
    const changes = { keyId: `key_${"0".repeat(32)}`, detail };
    await settle(
      Array.from({ length: 4_500 }, (_, index) =>
        record(
          `ws_${index % 2 === 0 ? "a" : index % 20}`,
          Date.UTC(2026, 10, 1) + index * 9_000,
          changes,
        ),
      ),
    );
    const slices = await measure();
    expect(slices.reduce((sum, { rows }) => sum + rows, 0)).toBe(4_500);
    const bytes = slices.reduce((sum, slice) => sum + slice.bytes, 0);
    const taken =
      storage.kind === "postgres"
        ? await sizes.atMost()
        : Number(
            (
              await sql<{ bytes: number }>`
      select sum(pgsize) as bytes from dbstat where name = 'generations'`.execute(storage.database)
            ).rows[0]?.bytes,
          );
    expect(bytes / taken).toBeWithin(0.75, 1.25);
    expect(await sizes.atMost()).toBeGreaterThanOrEqual(taken);
    await storage.close();
  });
});
