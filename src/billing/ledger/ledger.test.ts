import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import type { CommitOptions, CommitUnit } from "../../platform/storage/commit-queue.ts";
import { AccountBook, availableOf, balanceOf } from "./book/account-book.ts";
import { Ledger } from "./ledger.ts";
import type { Bucket } from "./transfer.ts";

function newLedger(): { ledger: Ledger; commits: MemoryCommits; clock: FakeClock } {
  const commits = new MemoryCommits();
  const clock = new FakeClock();
  return { ledger: new Ledger({ book: new AccountBook(), commits, clock }), commits, clock };
}

const nothing = () => ({ inserts: [], adds: [] });

const outcomeText = (outcome: { ok: boolean; reason?: string }): string =>
  outcome.ok ? "ok" : (outcome.reason ?? "?");

/** Runs one row of a table, and returns its outcome and the balance afterwards. */
async function runRow(
  { ledger, clock }: ReturnType<typeof newLedger>,
  row: string,
): Promise<string> {
  const [verb = "", id = "", ...rest] = row.trim().split(/\s+/);
  switch (verb) {
    case "credit": {
      const [bucket = "topup", amount = "0"] = rest;
      await ledger.credit({
        id,
        workspaceId: "ws",
        bucket: bucket as Bucket,
        amountNano: BigInt(amount),
        kind: bucket === "topup" ? "topup" : "grant",
        reference: null,
      });
      return "ok";
    }
    case "reserve": {
      const [amount = "0", limit] = rest;
      return outcomeText(
        ledger.reserve({
          holdId: id,
          workspaceId: "ws",
          keyId: "key",
          ceilingNano: BigInt(amount),
          keyLimit: limit === undefined ? null : { limitNano: BigInt(limit), windowHours: 24 },
        }),
      );
    }
    case "post":
      return outcomeText(
        await ledger.post({ holdId: id, amountNano: BigInt(rest[0] ?? "0"), alongside: nothing })
          .durable,
      );
    case "void":
      return ledger.void(id);
    case "expire":
      return ledger.expire().join(",") || "none";
    case "hours":
      clock.advance(Number(id) * 3_600_000);
      return "ok";
    default:
      throw new Error(`unknown verb in ${row}`);
  }
}

/** Each line is an operation, its outcome, and `balance/held` afterwards. */
const tables: Record<string, string> = {
  "posting less than the hold releases the rest": `
    credit t1 topup 1000           | ok                    | 1000/0
    reserve r1 500                 | ok                    | 1000/500
    reserve r1 500                 | exists                | 1000/500
    post r1 420                    | ok                    | 580/0
    post r1 420                    | already_settled       | 580/0
    void r1                        | already_settled       | 580/0`,
  "a hold is reduced to the free balance, and refused if nothing is free": `
    credit t1 topup 1000           | ok                    | 1000/0
    reserve r1 9999                | ok                    | 1000/1000
    reserve r2 1                   | insufficient_balance  | 1000/1000
    post r1 300                    | ok                    | 700/0
    reserve r2 1                   | ok                    | 700/1`,
  "a charge above its hold uses the free balance, never other holds": `
    credit t1 topup 1000           | ok                    | 1000/0
    reserve r1 100                 | ok                    | 1000/100
    reserve r2 600                 | ok                    | 1000/700
    post r1 900                    | ok                    | 600/600
    post r2 600                    | ok                    | 0/0
    reserve r3 1                   | insufficient_balance  | 0/0`,
  "monthly credits are spent before top-ups": `
    credit t1 monthly 100          | ok                    | 100/0
    credit t2 topup 100            | ok                    | 200/0
    reserve r1 150                 | ok                    | 200/150
    post r1 150                    | ok                    | 50/0`,
  "a free request needs no balance": `
    reserve r1 0                   | ok                    | 0/0
    post r1 0                      | ok                    | 0/0`,
  "a key limit refuses a hold above it, and admits holds again after its window": `
    credit t1 topup 1000           | ok                    | 1000/0
    reserve r1 100 100             | ok                    | 1000/100
    reserve r2 100 100             | key_limit             | 1000/100
    post r1 100                    | ok                    | 900/0
    reserve r3 1 100               | key_limit             | 900/0
    hours 26                       | ok                    | 900/0
    reserve r4 50 100              | ok                    | 900/50
    void r4                        | ok                    | 900/0`,
  "a top-up is available to the next request": `
    reserve r1 10                  | insufficient_balance  | 0/0
    credit t1 topup 10             | ok                    | 10/0
    reserve r1 10                  | ok                    | 10/10`,
  "a hold that is never settled expires after the maximum hold time": `
    credit t1 topup 10             | ok                    | 10/0
    reserve r1 10                  | ok                    | 10/10
    hours 1                        | ok                    | 10/10
    expire -                       | none                  | 10/10
    hours 2                        | ok                    | 10/10
    expire -                       | r1                    | 10/0`,
};

describe("Ledger", () => {
  for (const [name, table] of Object.entries(tables)) {
    test(name, async () => {
      const setup = newLedger();
      for (const line of table.trim().split("\n")) {
        const [row = "", outcome = "", after = ""] = line.split("|").map((cell) => cell.trim());
        const seen = await runRow(setup, row);
        const account = setup.ledger.book.workspace("ws");
        expect(`${row} | ${seen} | ${balanceOf(account)}/${account.heldNano}`).toBe(
          `${row} | ${outcome} | ${after}`,
        );
      }
      expect([...setup.commits.balances().values()].reduce((sum, value) => sum + value, 0)).toBe(0);
    });
  }

  test("books the part of a charge that exceeds the balance to the operator", async () => {
    const { ledger, commits } = newLedger();
    await ledger.credit({
      id: "t",
      workspaceId: "ws",
      bucket: "topup",
      amountNano: 100n,
      kind: "topup",
      reference: null,
    });
    ledger.reserve({
      holdId: "gen_1",
      workspaceId: "ws",
      keyId: "key",
      keyLimit: null,
      ceilingNano: 50n,
    });
    const posted = await ledger.post({ holdId: "gen_1", amountNano: 130n, alongside: nothing })
      .durable;
    expect(posted).toMatchObject({
      ok: true,
      chargedNano: 100n,
      uncollectedNano: 30n,
      balanceAfterNano: 0n,
    });
    expect(commits.transferSum("operator:uncollected")).toBe(-30);
    expect(commits.transferSum("operator:revenue")).toBe(130);
  });

  test("restores the balance and releases the hold when the commit is refused", async () => {
    const { ledger, commits } = newLedger();
    await ledger.credit({
      id: "t",
      workspaceId: "ws",
      bucket: "topup",
      amountNano: 100n,
      kind: "topup",
      reference: null,
    });
    ledger.reserve({
      holdId: "gen_1",
      workspaceId: "ws",
      keyId: "key",
      keyLimit: null,
      ceilingNano: 50n,
    });
    commits.failNext = true;
    await expect(
      ledger.post({ holdId: "gen_1", amountNano: 40n, alongside: nothing }).durable,
    ).rejects.toThrow("refused");
    expect(availableOf(ledger.book.workspace("ws"))).toBe(100n);
    expect(ledger.openHoldCount).toBe(0);
  });
});

test("random histories never take a balance below zero, and balances equal the sum of transfers", async () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant("credit" as const),
      amount: fc.integer({ min: 1, max: 500 }),
      monthly: fc.boolean(),
    }),
    fc.record({ kind: fc.constant("reserve" as const), amount: fc.integer({ min: 0, max: 400 }) }),
    fc.record({
      kind: fc.constant("post" as const),
      amount: fc.integer({ min: 0, max: 600 }),
      pick: fc.nat(),
    }),
    fc.record({ kind: fc.constant("void" as const), pick: fc.nat() }),
    fc.record({ kind: fc.constant("refuse" as const), pick: fc.nat() }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { ledger, commits } = newLedger();
      const open: string[] = [];
      for (const [index, action] of steps.entries()) {
        const account = ledger.book.workspace("ws");
        if (action.kind === "credit") {
          await ledger.credit({
            id: `t${index}`,
            workspaceId: "ws",
            bucket: action.monthly ? "monthly" : "topup",
            amountNano: BigInt(action.amount),
            kind: action.monthly ? "grant" : "topup",
            reference: null,
          });
        } else if (action.kind === "reserve") {
          const outcome = ledger.reserve({
            holdId: `gen_${index}`,
            workspaceId: "ws",
            keyId: "key",
            keyLimit: null,
            ceilingNano: BigInt(action.amount),
          });
          if (outcome.ok) open.push(`gen_${index}`);
        } else if (open.length > 0) {
          const [id = ""] = open.splice(action.pick % open.length, 1);
          if (action.kind === "void") ledger.void(id);
          else {
            commits.failNext = action.kind === "refuse";
            await ledger
              .post({
                holdId: id,
                amountNano: BigInt("amount" in action ? action.amount : 10),
                alongside: nothing,
              })
              .durable.catch(() => undefined);
            commits.failNext = false;
          }
        }
        expect(account.monthlyNano >= 0n && account.topupNano >= 0n && account.heldNano >= 0n).toBe(
          true,
        );
        expect(account.heldNano <= balanceOf(account)).toBe(true);
      }
      const account = ledger.book.workspace("ws");
      expect(Number(account.monthlyNano)).toBe(commits.transferSum("ws:monthly"));
      expect(Number(account.topupNano)).toBe(commits.transferSum("ws:topup"));
      expect([...commits.balances().values()].reduce((sum, value) => sum + value, 0)).toBe(0);
      expect(ledger.openHoldCount).toBe(open.length);
    }),
    { numRuns: 300 },
  );
});

test("a hold, a charge and a refused charge of a key also count for its parent key", async () => {
  const { ledger, commits, clock } = newLedger();
  await ledger.credit({
    id: "t1",
    workspaceId: "ws",
    bucket: "topup",
    amountNano: 1_000n,
    kind: "topup",
    reference: null,
  });
  const parent = { keyId: "parent", keyLimit: { limitNano: 100n, windowHours: 24 } };
  const reserve = (holdId: string, keyId: string) =>
    ledger.reserve({ holdId, workspaceId: "ws", keyId, keyLimit: null, ceilingNano: 70n, parent });
  const spent = (keyId: string): bigint =>
    ledger.book.key(keyId).spend.spentWithin(24, clock.nowMs());
  expect([reserve("gen_1", "a"), reserve("gen_2", "b"), reserve("gen_3", "a")]).toMatchObject([
    { ok: true, heldNano: 70n },
    { ok: true, heldNano: 30n },
    { ok: false, reason: "key_limit" },
  ]);
  expect(ledger.book.key("parent").heldNano).toBe(100n);
  await ledger.post({ holdId: "gen_1", amountNano: 60n, alongside: nothing }).durable;
  expect([spent("a"), spent("b"), spent("parent"), ledger.book.key("parent").heldNano]).toEqual([
    60n,
    0n,
    60n,
    30n,
  ]);
  commits.failNext = true;
  await expect(
    ledger.post({ holdId: "gen_2", amountNano: 30n, alongside: nothing }).durable,
  ).rejects.toThrow("refused");
  expect([
    spent("b"),
    spent("parent"),
    ledger.book.key("b").heldNano,
    ledger.book.key("parent").heldNano,
  ]).toEqual([0n, 60n, 0n, 0n]);
});

test("a charge allows later commits to follow while other holds are open, but not for the last hold", async () => {
  const told: (boolean | undefined)[] = [];
  class TellingCommits extends MemoryCommits {
    override commit(unit: CommitUnit, options?: CommitOptions): Promise<void> {
      told.push(options?.moreMayFollow);
      return super.commit(unit);
    }
  }
  const ledger = new Ledger({
    book: new AccountBook(),
    commits: new TellingCommits(),
    clock: new FakeClock(),
  });
  for (const holdId of ["r1", "r2"])
    ledger.reserve({ holdId, workspaceId: "ws", keyId: "key", ceilingNano: 0n, keyLimit: null });
  for (const holdId of ["r1", "r2"])
    await ledger.post({ holdId, amountNano: 0n, alongside: nothing }).durable;
  expect(told).toEqual([true, false]);
});
