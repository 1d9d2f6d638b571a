import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import { AccountBook } from "../ledger/book/account-book.ts";
import type { RunTables } from "../runs/run-store.ts";
import { loadAllocated } from "./allocated-rows.ts";

test("what a run cost stays in the totals of its owner and the key above it, and leaves their windows", async () => {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-allocated-"));
  const storage = await openStorage<RunTables>({
    url: await putMigratedSqlite(directory),
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
  const nowMs = 100 * dayMs;
  const rows = [5, 29, 31.5, 90].map((days) => ({
    id: `run_${days}`,
    workspace_id: "ws_1",
    owner_id: "key_child",
    root_id: "key_child",
    name: "night",
    joined_name: null,
    hash: `hash-${days}`,
    label: "",
    limit_nano: 1_000,
    max_requests: null,
    depth: 0,
    max_depth: 0,
    expires_at_ms: 0,
    degrade: null,
    loop_guard: null,
    paused: 0,
    version: 1,
    creator_user_id: "user_1",
    created_at_ms: 0,
    updated_at_ms: null,
    ended_at_ms: 0,
    released_at_ms: nowMs - days * dayMs,
    settled_nano: 10,
    settled_byok_nano: 7,
    alerted_percent: 0,
  }));
  await storage.database.insertInto("runs").values(rows).execute();
  const parents = new Map([["key_child", "key_parent"]]);
  for (const workspaceId of [undefined, "ws_1"]) {
    const book = new AccountBook();
    await loadAllocated(withTables(storage.database), { book, nowMs, parents, workspaceId });
    for (const id of ["key_child", "key_parent"]) {
      const { spend, byok, allocatedNano } = book.key(id);
      expect([spend.total, spend.spentWithin(30 * 24, nowMs), allocatedNano]).toEqual([
        40n,
        20n,
        0n,
      ]);
      expect([byok?.total, byok?.spentWithin(30 * 24, nowMs)]).toEqual([28n, 14n]);
    }
  }
  await storage.close();
  rmSync(directory, { recursive: true });
});
