import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Database } from "bun:sqlite";
import {
  openInsightStorage,
  recordInSeries,
  settledUnit,
} from "../../test/support/generation-records.ts";
import { checkUsage } from "./usage-check.ts";

test("sums of usage are compared with the records, folded or not, and differences are named", async () => {
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
