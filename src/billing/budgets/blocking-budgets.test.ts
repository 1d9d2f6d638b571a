import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import { AccountBook } from "../ledger/book/account-book.ts";
import { BudgetCounters } from "../ledger/book/budget-counters.ts";
import type { ReserveOutcome } from "../ledger/hold-rule.ts";
import { Ledger } from "../ledger/ledger.ts";
import { BlockingBudgets } from "./blocking-budgets.ts";
import { budgetTags, type Budget } from "./budget.ts";

const clock = new FakeClock();
const budget: Budget = {
  id: "bud_1",
  workspaceId: "ws",
  name: "each",
  scope: "customer",
  subject: "*",
  period: "daily",
  timeZone: null,
  action: "block",
  limitNano: 150n,
  thresholds: [],
  emails: [],
  webhookUrl: null,
  secretVersion: 1,
  createdAtMs: 0,
  updatedAtMs: null,
};

test("a request pays what it held, although a budget was made while it ran", async () => {
  const blocking = new BlockingBudgets();
  const budgets = new BudgetCounters({ blocking, spentBy: () => Promise.resolve(0n) });
  const book = new AccountBook();
  const ledger = new Ledger({ book, commits: new MemoryCommits(), clock, budgets });
  book.workspace("ws").topupNano = 1_000n;
  const tags = (): string[] =>
    budgetTags({ keyIds: ["key"], userId: "usr", models: [], providers: [] });
  const hold = (holdId: string): ReserveOutcome =>
    ledger.reserve({
      holdId,
      workspaceId: "ws",
      keyId: "key",
      keyLimit: null,
      ceilingNano: 100n,
      tags,
    });
  hold("first");
  hold("second");
  const all: Budget = { ...budget, scope: "workspace", subject: null, limitNano: 30n };
  await ledger.watch(all);
  blocking.put(all);
  const post = (holdId: string, amountNano: bigint) =>
    ledger.post({ holdId, amountNano, tags, alongside: () => ({ inserts: [], adds: [] }) }).durable;
  expect(await post("first", 90n)).toMatchObject({ chargedNano: 90n, uncollectedNano: 0n });
  // Beyond the hold the budget bounds it.
  expect(await post("second", 130n)).toMatchObject({ chargedNano: 100n, uncollectedNano: 30n });
  expect(hold("third")).toMatchObject({ ok: false, reason: "budget" });
});

test.each([
  ["in UTC", null],
  ["in a time zone", "Asia/Kathmandu"],
] as const)("a budget of each customer %s, made while a request is held", async (_, timeZone) => {
  const blocking = new BlockingBudgets();
  const budgets = new BudgetCounters({
    blocking,
    spentBy: () => Promise.resolve(0n),
    spentByEach: () => Promise.resolve(new Map()),
  });
  const book = new AccountBook();
  const ledger = new Ledger({ book, commits: new MemoryCommits(), clock, budgets });
  book.workspace("ws").topupNano = 1_000n;
  const tags = (): string[] => {
    const senders = (ledger.senderScopesOf("ws") ?? []).map((scope) => ({
      scope,
      subject: "anna",
    }));
    const parts = { keyIds: ["key"], userId: "usr", models: [], providers: [] };
    const use = { tags: () => budgetTags({ ...parts, senders }), atMs: clock.nowMs() };
    return budgetTags({ ...parts, senders: [...senders, ...ledger.windowsOf("ws", use)] });
  };
  const hold = (holdId: string, ceilingNano: bigint): ReserveOutcome =>
    ledger.reserve({ holdId, workspaceId: "ws", keyId: "key", keyLimit: null, ceilingNano, tags });
  expect(hold("first", 100n)).toMatchObject({ ok: true, heldNano: 100n });
  const zoned = { ...budget, timeZone };
  if (timeZone !== null) blocking.put({ ...zoned, action: "alert" });
  await ledger.watch(zoned);
  blocking.put(zoned);
  // What was held before may count or not, but it frees no more than it counted.
  const second = hold("second", 150n);
  ledger.void("first");
  const heldNano = second.ok ? second.heldNano : 0n;
  const third = hold("third", 150n);
  expect(third.ok ? third.heldNano + heldNano : heldNano).toBe(150n);
  expect(hold("fourth", 1n)).toMatchObject({ ok: false, reason: "budget" });
});
