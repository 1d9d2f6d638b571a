import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { WorkspaceStore } from "../../identity/workspaces/workspace-store.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import { AccountBook } from "../ledger/book/account-book.ts";
import { AutomaticStore } from "./automatic-store.ts";
import { AutomaticTopUps } from "./automatic-top-ups.ts";
import type { Order } from "./orders.ts";
import type { PaymentTables } from "./payment-tables.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-automatic-"));
let storage: Storage<PaymentTables>;
beforeAll(async () => {
  const commitStatements = { inserts: [], adds: [] };
  const url = await putMigratedSqlite(root);
  storage = await openStorage({ url, durability: "process", migrations, commitStatements });
}, 60_000);
afterAll(async () => {
  await storage.close();
  rmSync(root, { recursive: true, force: true });
});

test("a card is not charged once its owner has turned that off, although others come first", async () => {
  const store = new AutomaticStore(withTables(storage.database));
  const workspaces = new WorkspaceStore(withTables(storage.database));
  for (const id of ["ws_1", "ws_2"]) {
    await workspaces.insert({ id, name: id, plan: "payg", createdAtMs: 0 });
    const amounts = { thresholdCents: 500, creditCents: 1_000, monthlyMaxCents: 5_000 };
    const card = { id: "pm_1", label: "visa 4242" };
    const consent = { consentedAtMs: 0, consentedBy: "usr_1" };
    await store.agree({ workspaceId: id, live: false, ...amounts, card, ...consent });
  }
  const charged: string[] = [];
  const topUps = new AutomaticTopUps({
    books: {
      orders: {
        openAutomatic: async () => [],
        automaticIn: async () => [],
        customerOf: async () => "cus_1",
        insert: async () => undefined,
      },
      ledger: { refresh: async () => undefined, book: new AccountBook() },
      settings: { fee: { basisPoints: 500, fixedCents: 50 }, currency: "usd" },
      clock: new FakeClock(),
    },
    stripe: {
      charge: async ({ workspaceId }: Order) => {
        charged.push(workspaceId);
        await store.turnOff("ws_2");
        return { status: "processing" };
      },
    },
    store,
    commits: new MemoryCommits(),
    live: false,
    mutex: new KeyedMutex(),
    buyerOf: (name: string) => ({ name }),
    onError: (error: unknown) => {
      throw error;
    },
  } as unknown as ConstructorParameters<typeof AutomaticTopUps>[0]);
  await topUps.run();
  expect(charged).toEqual(["ws_1"]);
});
