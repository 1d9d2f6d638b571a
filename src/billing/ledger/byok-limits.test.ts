import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import { AccountBook } from "./book/account-book.ts";
import type { SpendingKey } from "./hold-rule.ts";
import { Ledger } from "./ledger.ts";

const workspaceId = "ws_1";
const nothing = { inserts: [], adds: [] };
const key = (keyId: string, limitNano: bigint, countsByok: boolean): SpendingKey => ({
  keyId,
  keyLimit: { limitNano, windowHours: 24 },
  countsByok,
});

interface Wanted {
  ceilingNano?: bigint;
  byokNano?: bigint;
  parent?: SpendingKey;
}

function start() {
  const book = new AccountBook();
  const commits = new MemoryCommits();
  const ledger = new Ledger({ book, commits, clock: new FakeClock() });
  book.workspace(workspaceId).topupNano = 1_000n;
  let count = 0;
  return {
    book,
    commits,
    ledger,
    /** Reserves; returns the id and the amount of the hold, or the reason of a refusal. */
    reserve(who: SpendingKey, { ceilingNano = 0n, byokNano = 0n, parent }: Wanted) {
      const holdId = `gen_${(count += 1)}`;
      const outcome = ledger.reserve({
        holdId,
        workspaceId,
        ceilingNano,
        byokNano,
        parent,
        ...who,
      });
      return outcome.ok ? { holdId, heldNano: outcome.heldNano } : outcome.reason;
    },
    post: (holdId: string, amounts: { amountNano?: bigint; byokNano?: bigint }) =>
      ledger.post({ holdId, amountNano: 0n, alongside: () => nothing, ...amounts }).durable,
  };
}

test("a key limit that includes BYOK usage holds the worst case of BYOK requests, and no balance", () => {
  const { reserve, book } = start();
  expect(reserve(key("a", 100n, true), { byokNano: 60n })).toMatchObject({ heldNano: 0n });
  expect(book.key("a").heldNano).toBe(60n);
  expect(book.workspace(workspaceId).heldNano).toBe(0n);
  expect(reserve(key("a", 100n, true), { byokNano: 60n })).toMatchObject({ heldNano: 0n });
  expect(book.key("a").heldNano).toBe(100n);
  expect(reserve(key("a", 100n, true), { byokNano: 1n })).toBe("key_limit");
  expect(reserve(key("b", 1n, false), { byokNano: 60n })).toMatchObject({ heldNano: 0n });
  expect(book.key("b").heldNano).toBe(0n);
});

test("a hold takes the higher of the BYOK and the platform cost from the key limit", () => {
  const { reserve, book, ledger } = start();
  const outcome = reserve(key("a", 100n, true), { ceilingNano: 40n, byokNano: 70n });
  expect([book.key("a").heldNano, book.workspace(workspaceId).heldNano]).toEqual([70n, 40n]);
  ledger.void(typeof outcome === "string" ? "" : outcome.holdId);
  expect([book.key("a").heldNano, book.workspace(workspaceId).heldNano]).toEqual([0n, 0n]);
});

test("BYOK usage counts against the key limit, charges no balance and is stored beside the charges", async () => {
  const { reserve, post, book, commits } = start();
  const outcome = reserve(key("a", 100n, true), { byokNano: 60n });
  await post(typeof outcome === "string" ? "" : outcome.holdId, { byokNano: 90n });
  expect([book.key("a").spend.total, book.key("a").byok?.total, book.key("a").heldNano]).toEqual([
    0n,
    90n,
    0n,
  ]);
  expect(book.workspace(workspaceId).topupNano).toBe(1_000n);
  const counted = commits.units
    .flatMap(({ adds }) => adds)
    .filter(({ statement }) => statement.name === "key-byok-hour");
  expect(counted.map(({ sums }) => sums)).toEqual([[90]]);
  expect(reserve(key("a", 100n, true), { byokNano: 60n })).toMatchObject({ heldNano: 0n });
  expect(book.key("a").heldNano).toBe(10n);
  // A limit of the same key that does not count own provider keys has everything left.
  expect(reserve(key("a", 100n, false), { ceilingNano: 90n })).toMatchObject({ heldNano: 90n });
});

test("BYOK usage of a child key counts against a parent limit that includes BYOK usage", async () => {
  const { reserve, post, book } = start();
  const parent = key("parent", 100n, true);
  const child = key("child", 1n, false);
  const outcome = reserve(child, { byokNano: 60n, parent });
  expect([book.key("child").heldNano, book.key("parent").heldNano]).toEqual([0n, 60n]);
  await post(typeof outcome === "string" ? "" : outcome.holdId, { byokNano: 100n });
  expect(reserve(child, { byokNano: 60n, parent })).toBe("key_limit");
});

test("BYOK usage of a refused commit does not count against the key limit", async () => {
  const { reserve, post, book, commits } = start();
  const outcome = reserve(key("a", 100n, true), { byokNano: 60n });
  commits.failNext = true;
  await expect(
    post(typeof outcome === "string" ? "" : outcome.holdId, { byokNano: 90n }),
  ).rejects.toThrow();
  expect([book.key("a").byok?.total, book.key("a").heldNano]).toEqual([0n, 0n]);
});
