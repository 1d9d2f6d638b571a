import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { openInsightStorage } from "../../test/support/generation-records.ts";
import { migratedDatabase } from "../../test/support/postgres.ts";
import { hourMs } from "../platform/kernel/clock.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import { RefusedRequests } from "./refused-requests.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-refused-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const engines: [string, () => Promise<string>][] = [
  ["SQLite", async () => `sqlite:${join(root, "refused.db")}`],
  ["Postgres", migratedDatabase],
];

describe.each(engines)("refused requests on %s", (_, freshUrl) => {
  test("include those that are being written", async () => {
    const storage = await openInsightStorage(await freshUrl());
    const clock = new FakeClock();
    const refused = new RefusedRequests({
      database: withTables(storage.database),
      commits: storage.commits,
      clock,
      onError: (error) => {
        throw error;
      },
    });
    refused.note({ workspaceId: "ws_own", keyId: "key_own", code: "insufficient_balance" });
    refused.note({ workspaceId: "ws_own", keyId: "key_own", code: "unauthorized" });
    // As the timer does it, without waiting for the commit.
    void refused.write();
    const sums = await refused.sums({
      workspaceId: "ws_own",
      fromMs: clock.nowMs() - hourMs,
      toMs: clock.nowMs() + hourMs,
      filter: {},
    });
    expect(sums).toEqual([
      { keyId: "key_own", code: "insufficient_balance", status: 402, requests: 1 },
    ]);
    await storage.close();
  });
});
