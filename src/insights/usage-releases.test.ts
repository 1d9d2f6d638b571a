import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import {
  openInsightStorage,
  recordInSeries,
  settledUnit,
  type InsightTables,
} from "../../test/support/generation-records.ts";
import { freshDatabase } from "../../test/support/postgres.ts";
import { expectCountersToMatch } from "../../test/support/usage-counters.ts";
import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import {
  type AddStatement,
  type CommitStatements,
  type CommitUnit,
  createUnitPacker,
} from "../platform/storage/commit-queue.ts";
import { firstSchema } from "../platform/storage/migrations/2026-11-23-first-schema.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import { BatchCommit, foldWhatIsLeft } from "../platform/storage/sqlite/batch-commit.ts";
import type { Storage } from "../platform/storage/storage.ts";
import { generationInsert, type GenerationRecord, isOutage } from "./generation-record.ts";
import { usageAddStatements } from "./usage/usage-rollup.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-usage-releases-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const sumColumns = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_nano",
];
const addOf = (
  table: string,
  keyColumns: readonly string[],
  columns: readonly string[] = sumColumns,
): AddStatement => ({ name: table, table, keyColumns, sumColumns: columns });

/** The sums of the first release, which has a growth of its own for each counter. */
const firstAdds = {
  hours: addOf("usage_hours", ["workspace_id", "hour", "key_id", "model", "provider"]),
  days: addOf("usage_days", ["workspace_id", "day", "key_id", "model", "provider"]),
  keyDays: addOf("usage_key_days", ["workspace_id", "day", "key_id", "model"]),
  networkHours: addOf("network_hours", ["hour"], ["requests", "tokens"]),
  networkDays: addOf(
    "network_days",
    ["day", "model", "provider"],
    [...sumColumns, "attempts", "failures"],
  ),
};
const firstStatements: CommitStatements = {
  inserts: [generationInsert],
  adds: Object.values(firstAdds),
};
const statements: CommitStatements = { inserts: [generationInsert], adds: usageAddStatements };

/** What the first release commits of a record. */
function firstUnit(record: GenerationRecord): CommitUnit {
  const { workspaceId, keyId, model, provider, promptTokens, completionTokens, detail } = record;
  const hour = Math.floor(record.createdAtMs / hourMs);
  const day = Math.floor(record.createdAtMs / dayMs);
  const sums = [
    1,
    record.status === "cut" ? 1 : 0,
    promptTokens,
    completionTokens,
    detail.usage["cacheReadTokens"] ?? 0,
    detail.usage["reasoningTokens"] ?? 0,
    Number(record.costNanoUsd),
  ];
  const tries = record.attempts.map((attempt, index) => ({
    statement: firstAdds.networkDays,
    key: [day, attempt.model, attempt.provider],
    sums: [
      ...(index === record.attempts.length - 1 ? sums : sums.map(() => 0)),
      ...(attempt.outcome === "cancelled" ? [0, 0] : [1, isOutage(attempt) ? 1 : 0]),
    ],
  }));
  const hours = { statement: firstAdds.hours, key: [workspaceId, hour, keyId, model, provider] };
  const days = { statement: firstAdds.days, key: [workspaceId, day, keyId, model, provider] };
  const keyDays = { statement: firstAdds.keyDays, key: [workspaceId, day, keyId, model] };
  const network = { statement: firstAdds.networkHours, key: [hour] };
  return {
    inserts: settledUnit(record).inserts,
    adds: [
      { ...hours, sums },
      { ...days, sums },
      { ...keyDays, sums },
      { ...network, sums: [1, promptTokens + completionTokens] },
      ...tries,
    ],
  };
}

const openFirst = (url: string): Promise<Storage<InsightTables>> =>
  openStorage<InsightTables>({
    url,
    durability: "process",
    migrations: [firstSchema],
    lockTimeoutMs: 0,
    severalGateways: true,
    commitStatements: firstStatements,
  });

const series = (start: number, count: number): GenerationRecord[] =>
  Array.from({ length: count }, (_, index) => recordInSeries(start + index));

/** Attempts and failures of a day, which no record has by itself. */
const triesOf = async ({ database }: Pick<Storage<InsightTables>, "database">) =>
  database
    .selectFrom("network_days")
    .select(({ fn }) => [
      fn.sum<string>("attempts").as("attempts"),
      fn.sum<string>("failures").as("failures"),
    ])
    .executeTakeFirstOrThrow();

function expectedTries(records: readonly GenerationRecord[]) {
  const attempts = records.flatMap((record) => record.attempts);
  return {
    attempts: String(attempts.filter(({ outcome }) => outcome !== "cancelled").length),
    failures: String(attempts.filter(isOutage).length),
  };
}

async function expectExact(
  storage: Storage<InsightTables>,
  records: readonly GenerationRecord[],
): Promise<void> {
  await expectCountersToMatch(storage.database, records);
  const { attempts, failures } = await triesOf(storage);
  expect({ attempts: String(attempts), failures: String(failures) }).toEqual(
    expectedTries(records),
  );
}

test("gateways of two releases on Postgres fold each other's commits, each growth once", async () => {
  const url = await freshDatabase();
  const before = await openFirst(url);
  const old = series(0, 60);
  await Promise.all(old.map((record) => before.commits.commit(firstUnit(record))));
  const now = await openInsightStorage(url, { severalGateways: true });
  // The old one restarts on the migrated database, and all of them commit and read at once.
  const again = await openFirst(url);
  const later = series(60, 240);
  const commits = later.map((record, index) => {
    if (index % 3 === 0) return now.commits.commit(settledUnit(record));
    return [before, again][index % 2]?.commits.commit(firstUnit(record));
  });
  const reads = Array.from({ length: 20 }, (_, index) =>
    triesOf([before, now, again][index % 3] ?? now),
  );
  await Promise.all([...commits, ...reads]);
  for (const reader of [before, again, now]) await expectExact(reader, [...old, ...later]);
  // What one commits right before another reads is counted by the reader's own fold.
  const last = series(300, 40);
  await Promise.all(last.map((record) => now.commits.commit(settledUnit(record))));
  await expectExact(again, [...old, ...later, ...last]);
  const growths = await now.database
    .selectFrom("usage_growths" as "usage_days")
    .selectAll()
    .execute();
  expect(growths).toEqual([]);
  await Promise.all([before, now, again].map((storage) => storage.close()));
}, 240_000);

test("a fold that Postgres interrupts halfway is folded again, once", async () => {
  const url = await freshDatabase();
  const storage = await openInsightStorage(url);
  // Without failed tries, which a fold adds to the last counter before it spreads anything.
  const records = series(0, 120).filter(({ attempts }) => attempts.length === 1);
  const [holder, observer] = await Promise.all(
    [1, 2].map(async () => {
      const client = new Client({ connectionString: url });
      await client.connect();
      return client;
    }),
  );
  // The last of the counters; the others are written when the fold waits here.
  await holder?.query("begin; lock table network_days in exclusive mode");
  await Promise.all(records.map((record) => storage.commits.commit(settledUnit(record))));
  const ending = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0 and query like '%commit_growths%'`;
  let ended = 0;
  while (ended === 0) ended = (await observer?.query(ending))?.rows.length ?? 0;
  await holder?.query("commit");
  await expectExact(storage, records);
  await Promise.all([holder?.end(), observer?.end()]);
  await storage.close();
}, 240_000);

/** The writer's connection by itself, which nothing folds but the test. */
function openWriter(path: string, known: CommitStatements) {
  const database = new Database(path, { safeIntegers: true, strict: true });
  foldWhatIsLeft(database);
  const commit = new BatchCommit({ database, statements: known });
  const pack = createUnitPacker(known);
  const write = (units: readonly CommitUnit[]): void => {
    expect(commit.apply(units.map(pack))).toEqual([]);
  };
  return { database, commit, write };
}

test("on SQLite, each release counts the growth that the other release left behind", async () => {
  const path = join(root, "left.db");
  const url = `sqlite:${path}`;
  await (await openInsightStorage(url)).close();
  const committed: GenerationRecord[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    const records = series(turn * 50, 50);
    const isNew = turn % 2 === 0;
    const left = openWriter(path, isNew ? statements : firstStatements);
    left.write(records.map(isNew ? settledUnit : firstUnit));
    left.database.close();
    committed.push(...records);
    const next = await (isNew ? openFirst(url) : openInsightStorage(url));
    await expectExact(next, committed);
    await next.close();
  }
});

test("on SQLite, a fold that fails halfway leaves the counters unchanged", async () => {
  const path = join(root, "half.db");
  const url = `sqlite:${path}`;
  await (await openInsightStorage(url)).close();
  const records = series(0, 120);
  const { database, commit, write } = openWriter(path, statements);
  write(records.map(settledUnit));
  database.run(
    "create trigger fails before insert on network_days begin select raise(abort, 'half'); end",
  );
  expect(() => commit.fold()).toThrow("half");
  expect(commit.isFolded).toBe(false);
  expect(database.query("select * from usage_hours").all()).toEqual([]);
  database.run("drop trigger fails");
  database.close();
  const next = await openInsightStorage(url);
  await expectExact(next, records);
  await next.close();
});
