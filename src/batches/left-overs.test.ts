import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { putMigratedSqlite } from "../../test/support/migrated-sqlite.ts";
import type { FileTables } from "../files/file-store.ts";
import { hourMs, minuteMs } from "../platform/kernel/clock.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import type { Storage } from "../platform/storage/storage.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import type { BatchTables } from "./batch.ts";
import { BatchStore } from "./batch-store.ts";
import { leaseTimeOf } from "./lease-time.ts";
import { LeftOvers } from "./left-overs.ts";
import { batchResultInsert, LineStore } from "./line-store.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-left-overs-"));
let storage: Storage<BatchTables>;
beforeAll(async () => {
  storage = await openStorage({
    url: await putMigratedSqlite(directory),
    durability: "process",
    migrations,
    commitStatements: { inserts: [batchResultInsert], adds: [] },
  });
});
afterAll(async () => {
  await storage.close();
  rmSync(directory, { recursive: true, force: true });
});

const clock = new FakeClock();

/** A batch with a line, whose input was deleted and is held. */
async function batchIn(workspaceId: string, { batches, lines }: ReturnType<typeof stores>) {
  const database = withTables<Pick<FileTables, "files">>(storage.database);
  await database
    .insertInto("files")
    .values({
      id: `file_${workspaceId}`,
      workspace_id: workspaceId,
      key_id: null,
      created_at_ms: clock.nowMs(),
      expires_at_ms: null,
      filename: "in.jsonl",
      mime_type: "application/jsonl",
      purpose: "batch",
      is_output: 0,
      bytes: 1,
      object: workspaceId,
      sealed_key: "sealed",
      holds: 1,
      deleted_at_ms: clock.nowMs(),
    })
    .execute();
  const { id } = await batches.create(
    {
      workspaceId,
      keyId: "key",
      form: "openai",
      endpoint: "/v1/chat/completions",
      completionWindow: "24h",
      windowMs: 24 * hourMs,
      inputFileId: `file_${workspaceId}`,
      outputExpiresSeconds: null,
      metadata: null,
    },
    async () => "sealed",
  );
  async function* one() {
    yield [{ batchId: id, line: 1, customId: "a", start: 0, length: 1, tries: 0 }];
  }
  await lines.replace(id, one());
  await lines.fail({ batch_id: id, line: 1, status: 400, cost_nano: 0, result: "sealed" });
  return id;
}

function stores() {
  const { database, commits } = storage;
  const leaseTime = leaseTimeOf(clock, { isShared: false });
  const place = { database, clock, nodeId: "one", leaseTime };
  return {
    batches: new BatchStore({ ...place, kind: "sqlite" }),
    lines: new LineStore({ ...place, commits }),
  };
}

test("what a killed gateway has left of an ended batch is deleted, and nothing of an open one", async () => {
  const made = stores();
  const { batches, lines } = made;
  const ended = await batchIn("ended", made);
  const open = await batchIn("open", made);
  await batches.change(ended, ["validating"], { status: "failed", endedAtMs: clock.nowMs() });
  const leftOvers = new LeftOvers({ database: storage.database, lines, clock });
  const shown = async () => ({
    lines: [await lines.left(ended), await lines.left(open)].map(({ undone }) => undone),
    results: [await lines.result(ended, 1), await lines.result(open, 1)].map(
      (result) => result?.status,
    ),
    holds: (
      await withTables<Pick<FileTables, "files">>(storage.database)
        .selectFrom("files")
        .select("holds")
        .orderBy("id")
        .execute()
    ).map(({ holds }) => holds),
  });
  await leftOvers.sweep();
  expect(await shown()).toEqual({ lines: [1, 1], results: [400, 400], holds: [1, 1] });
  clock.advance(minuteMs);
  await leftOvers.sweep();
  // A batch may be created just after the hold on its input.
  expect(await shown()).toEqual({ lines: [0, 1], results: [undefined, 400], holds: [1, 1] });
  clock.advance(hourMs + 1);
  await leftOvers.sweep();
  expect(await shown()).toEqual({ lines: [0, 1], results: [undefined, 400], holds: [0, 1] });
});

test("lines that were left of a batch are deleted with it", async () => {
  const made = stores();
  const { batches, lines } = made;
  const id = await batchIn("deleted", made);
  expect(await batches.delete(id)).toBe(false);
  expect(await lines.left(id)).toEqual({ undone: 1, running: 0 });
  await batches.change(id, ["validating"], { status: "failed", endedAtMs: clock.nowMs() });
  expect(await batches.delete(id)).toBe(true);
  expect(await lines.left(id)).toEqual({ undone: 0, running: 0 });
  expect(await lines.result(id, 1)).toBeUndefined();
});
