import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  attemptOf,
  openInsightStorage,
  recordInSeries,
  recordOf,
  settledUnit,
} from "../../../test/support/generation-records.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { expectCountersToMatch } from "../../../test/support/usage-counters.ts";
import { hourMs } from "../../platform/kernel/clock.ts";
import type { GenerationRecord } from "../generation-record.ts";
import { usageAdds, checkUsage } from "./usage-rollup.ts";
import { Database } from "bun:sqlite";

const root = mkdtempSync(join(tmpdir(), "switchyard-rollup-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const engines: [string, () => Promise<string>][] = [
  ["SQLite", async () => `sqlite:${join(root, "rollup.db")}`],
  ["Postgres", migratedDatabase],
];

describe.each(engines)("usage counters on %s", (_, freshUrl) => {
  test("equal the sums of the records, for any batches", async () => {
    const storage = await openInsightStorage(await freshUrl());
    const records = Array.from({ length: 500 }, (_, index) => recordInSeries(index));
    await Promise.all(records.map((record) => storage.commits.commit(settledUnit(record))));
    await expectCountersToMatch(storage.database, records);
    const broken = await storage.database
      .selectFrom("network_days")
      .selectAll()
      .where("provider", "=", "broken")
      .execute();
    const failovers = records.filter(({ attempts }) => attempts.length > 1).length;
    expect(broken.map(({ requests }) => requests).every((count) => count === 0)).toBe(true);
    expect(broken.reduce((sum, { failures }) => sum + failures, 0)).toBe(failovers);
    // A record that is committed twice is refused the second time, and counts once.
    expect(
      await storage.commits.commit(settledUnit(records[0] ?? recordOf())).catch(() => "refused"),
    ).toBe("refused");
    await expectCountersToMatch(storage.database, records);
    await storage.close();
  }, 240_000);
});

const child = join(import.meta.dir, "../../../test/support/settle-until-killed.ts");

async function idsUntilKilled(
  path: string,
  { start, killAfterLines }: { start: number; killAfterLines: number },
): Promise<string[]> {
  const process = Bun.spawn([globalThis.process.execPath, child, path, String(start)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  let killed = false;
  for await (const chunk of process.stdout) {
    text += new TextDecoder().decode(chunk);
    if (killed || text.split("\n").length <= killAfterLines) continue;
    process.kill("SIGKILL");
    killed = true;
  }
  await process.exited;
  return text.split("\n").slice(1, -1);
}

test("after kill -9, the counters match the stored records, and every confirmed record is stored", async () => {
  const path = join(root, "killed.db");
  const shown: string[] = [];
  for (let round = 0; round < 6; round++) {
    shown.push(
      ...(await idsUntilKilled(path, { start: round * 100_000, killAfterLines: 2 + round * 61 })),
    );
    const storage = await openInsightStorage(`sqlite:${path}`);
    const rows = await storage.database.selectFrom("generations").selectAll().execute();
    const stored = new Set(rows.map(({ id }) => id));
    expect(shown.filter((id) => !stored.has(id))).toEqual([]);
    await expectCountersToMatch(
      storage.database,
      rows.map((row) =>
        recordOf({
          createdAtMs: row.created_at_ms,
          workspaceId: row.workspace_id,
          keyId: row.key_id,
          model: row.model,
          provider: row.provider,
          status: row.status as GenerationRecord["status"],
          promptTokens: row.prompt_tokens,
          completionTokens: row.completion_tokens,
          costNanoUsd: BigInt(row.cost_nano),
          detail: JSON.parse(row.detail) as GenerationRecord["detail"],
        }),
      ),
    );
    await storage.close();
  }
  expect(shown.length).toBeGreaterThan(500);
}, 240_000);

test("a failure counts for the last provider, each attempt for its own, and a refusal as no failure", () => {
  const attempts = [
    attemptOf({ provider: "first", outcome: "failed", reason: "timeout", status: null }),
    attemptOf({ provider: "second", outcome: "failed", reason: "credential_error", status: 401 }),
  ];
  const failed = recordOf({
    createdAtMs: 25 * hourMs,
    workspaceId: "ws",
    keyId: "key",
    provider: "second",
    status: "failed",
    promptTokens: 0,
    completionTokens: 0,
    costNanoUsd: 0n,
    attempts,
  });
  const wordsOf = (record: GenerationRecord): string[] =>
    usageAdds(record).map(
      ({ statement, key, sums }) => `${statement.name} ${key.join(" ")}: ${sums.join(" ")}`,
    );
  expect(wordsOf(failed)).toEqual([
    "usage ws 25 key acme/large second: 1 1 0 0 0 0 0 1 0",
    "network-day 1 acme/large first: 0 0 0 0 0 0 0 1 1",
  ]);
  expect(wordsOf({ ...failed, provider: "", attempts: [] })).toEqual([
    "usage-hour ws 25 key acme/large : 1 1 0 0 0 0 0",
    "usage-day ws 1 key acme/large : 1 1 0 0 0 0 0",
    "usage-key-day ws 1 key acme/large: 1 1 0 0 0 0 0",
  ]);
});

test("a cancelled request counts neither as an attempt nor as a failure", () => {
  const adds = usageAdds(
    recordOf({ status: "cancelled", attempts: [attemptOf({ outcome: "cancelled" })] }),
  );
  expect(adds.map(({ statement, sums }) => [statement.name, ...sums.slice(-2)])).toEqual([
    ["usage", 0, 0],
  ]);
});

test("checkUsage compares sums with records, folded or not, and reports differences", async () => {
  const root = mkdtempSync(join(tmpdir(), "switchyard-usage-check-"));
  const path = join(root, "test.db");
  const storage = await openInsightStorage(`sqlite:${path}`);
  const check = async (): Promise<string[]> => {
    using database = new Database(path, { readonly: true });
    // One moment for all that is read, as the doctor reads: folds go on beside it.
    database.run("begin");
    const problems = await checkUsage(async (text) =>
      database.query<Record<string, unknown>, []>(text).all(),
    );
    database.run("commit");
    return problems;
  };
  const records = Array.from({ length: 300 }, (_, index) => recordInSeries(index));
  const half = records.splice(0, 150);
  await Promise.all(half.map((record) => storage.commits.commit(settledUnit(record))));
  await storage.database.selectFrom("usage_days").selectAll().execute();
  await Promise.all(records.map((record) => storage.commits.commit(settledUnit(record))));
  expect(await check()).toEqual([]);
  await storage.close();
  expect(await check()).toEqual([]);
  using writing = new Database(path);
  const [{ day } = { day: 0 }] = writing
    .query<{ day: number }, []>(
      "select max(day) as day from usage_key_days where workspace_id = 'ws_1'",
    )
    .all();
  const cost =
    "update usage_key_days set cost_nano = cost_nano + 1 where workspace_id = 'ws_1' and day = ?1";
  writing
    .query(
      `${cost} and (key_id, model) = (select key_id, model from usage_key_days where workspace_id = 'ws_1' and day = ?1)`,
    )
    .run(day);
  writing.run("delete from usage_hours where workspace_id = 'ws_2'");
  const found = await check();
  expect(found.filter((line) => line.includes("usage_key_days"))).toHaveLength(1);
  expect(found).toContainEqual(
    expect.stringMatching(/^usage: cost_nano of ws_1 on 2026-11-21 are \d+ in usage_key_days/),
  );
  expect(found.filter((line) => line.includes("usage_hours")).length).toBeGreaterThan(1);
  rmSync(root, { recursive: true });
});
