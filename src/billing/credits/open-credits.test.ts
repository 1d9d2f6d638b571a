import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Workspace } from "../../identity/workspaces/workspace-store.ts";
import { AccountBook } from "../ledger/book/account-book.ts";
import { grantInsert } from "./grants.ts";
import { LedgerStore, type LedgerTables } from "../ledger/ledger-store.ts";
import { Ledger } from "../ledger/ledger.ts";
import { openCredits } from "./open-credits.ts";
import { ledgerAdds, transferInsert } from "../ledger/transfer.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-months-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const workspaceOn = (plan: Workspace["plan"]): Workspace => ({
  id: `ws_${plan}`,
  name: plan,
  plan,
  createdAtMs: 0,
});
const nothing = () => ({ inserts: [], adds: [] });

/** A ledger on a database, as a process has it. */
async function start(
  path: string,
  { clock, workspaces }: { clock: FakeClock; workspaces: Workspace[] },
) {
  const storage = await openStorage<LedgerTables>({
    url: `sqlite:${join(directory, path)}`,
    durability: "process",
    migrations,
    commitStatements: { inserts: [transferInsert, grantInsert], adds: ledgerAdds },
  });
  const { commits, database } = storage;
  const book = new AccountBook();
  await new LedgerStore({ database, commits }).loadInto(book, {
    nowMs: clock.nowMs(),
    parents: new Map(),
  });
  const ledger = new Ledger({ book, commits, clock });
  const errors: unknown[] = [];
  const credits = openCredits({
    database: withTables(database),
    commits,
    clock,
    ledger,
    workspaces: () => workspaces,
    plans: { pro: { monthlyCreditsNanoUsd: 20n }, max: { monthlyCreditsNanoUsd: 100n } },
    onError: (error) => errors.push(error),
  });
  const monthly = (id: string): bigint => book.workspace(id).monthlyNano;
  return { ledger, ...credits, monthly, errors, close: () => storage.close() };
}

test("each workspace receives its plan's credits once a month, across restarts and plan changes", async () => {
  const clock = new FakeClock(Date.UTC(2026, 10, 30, 23));
  const workspaces = [workspaceOn("pro"), workspaceOn("free")];
  let books = await start("plans.db", { clock, workspaces });
  await books.monthlyCredits.run();
  await books.monthlyCredits.run();
  expect([books.monthly("ws_pro"), books.monthly("ws_free")]).toEqual([20n, 0n]);
  workspaces.push(workspaceOn("max"));
  await books.monthlyCredits.run();
  expect(books.monthly("ws_max")).toBe(100n);
  await books.close();

  workspaces[0] = { ...workspaceOn("max"), id: "ws_pro" };
  books = await start("plans.db", { clock, workspaces });
  await books.monthlyCredits.run();
  expect(books.monthly("ws_pro")).toBe(20n);
  clock.advance(hourMs);
  await books.monthlyCredits.run();
  expect(books.monthly("ws_pro")).toBe(100n);
  clock.advance(31 * dayMs);
  await books.monthlyCredits.run();
  expect([books.monthly("ws_pro"), books.monthly("ws_max"), books.errors]).toEqual([
    100n,
    100n,
    [],
  ]);
  await books.close();
});

test("monthly credits expire at the end of the month; top-ups and open holds keep their credits", async () => {
  const clock = new FakeClock(Date.UTC(2026, 11, 31, 12));
  const workspaces = [workspaceOn("free")];
  const { ledger, grants, monthlyCredits, monthly, errors, close } = await start("lapse.db", {
    clock,
    workspaces,
  });
  const give = (transferId: string, amountNano: bigint) =>
    grants.give({
      transferId,
      workspaceId: "ws_free",
      bucket: "monthly",
      kind: "admin",
      amountNano,
      description: null,
      grantedBy: "usr_1",
    });
  await give("txn_1", 50n);
  await ledger.credit({
    id: "txn_2",
    workspaceId: "ws_free",
    bucket: "topup",
    amountNano: 7n,
    kind: "topup",
    reference: null,
  });
  ledger.reserve({
    holdId: "gen_1",
    workspaceId: "ws_free",
    keyId: "key",
    keyLimit: null,
    ceilingNano: 40n,
  });
  clock.advance(dayMs);
  await give("txn_3", 5n);
  await monthlyCredits.run();
  expect([monthly("ws_free"), ledger.book.workspace("ws_free").topupNano]).toEqual([33n, 7n]);
  await ledger.post({ holdId: "gen_1", amountNano: 10n, alongside: nothing }).durable;
  await monthlyCredits.run();
  expect([monthly("ws_free"), ledger.book.workspace("ws_free").topupNano, errors]).toEqual([
    5n,
    7n,
    [],
  ]);
  await close();
});

test("a grant with a known id is not applied twice, and reports fields that differ", async () => {
  const clock = new FakeClock();
  const { grants, monthly, close } = await start("grants.db", { clock, workspaces: [] });
  const grant = {
    transferId: "txn_1",
    workspaceId: "ws_1",
    bucket: "monthly",
    kind: "referral",
    amountNano: 9n,
    description: null,
    grantedBy: "t",
  } as const;
  expect(await Promise.all([grants.give(grant), grants.give(grant)])).toEqual(["ok", "exists"]);
  expect(await grants.give({ ...grant, amountNano: 10n })).toBe("exists_with_different_fields");
  expect(monthly("ws_1")).toBe(9n);
  await close();
});

test("a grant that the database refuses is logged and tried again in the next run", async () => {
  const clock = new FakeClock();
  const books = await start("refused.db", { clock, workspaces: [workspaceOn("pro")] });
  await books.close();
  await books.monthlyCredits.run();
  expect(books.errors).toHaveLength(1);
  expect(books.monthly("ws_pro")).toBe(0n);
});
