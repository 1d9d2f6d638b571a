import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LedgerProcess } from "../../../../test/support/ledger-process.ts";
import { hasRedis, redisMissing } from "../../../../test/support/redis.ts";
import { sharedLedgerStage } from "../../../../test/support/shared-ledger-stage.ts";
import { AccountBook } from "../book/account-book.ts";
import type { SharedHold } from "./local-holds.ts";
import { UnreportedCharges } from "./unreported-charges.ts";

const holdOf = (workspaceId: string): SharedHold => ({
  id: "gen_1",
  isAdvance: false,
  workspaceId,
  key: { keyId: "k", keyLimit: null },
  parent: undefined,
  entry: "100|k|100||0|0|1||node",
  heldNano: 100n,
  era: "run",
  mayHaveGrown: false,
  day: 1,
  tags: [],
  reservedAtMs: 0,
  settling: true,
});

test("charges committed in one turn are reported together, with one script per workspace", async () => {
  const reported = new Map<string, string[]>();
  const both = Promise.withResolvers<void>();
  const settled: string[] = [];
  const unreported = new UnreportedCharges({
    accounts: {
      eraOf: () => "run",
      async run(_script, workspaceId, values) {
        expect(reported.has(workspaceId)).toBe(false);
        reported.set(workspaceId, values.filter((_, index) => index % 8 === 0).map(String));
        if (reported.size === 2) both.resolve();
        return ["0", "7"];
      },
    },
    book: new AccountBook(),
    charges: {
      add: () => undefined,
      drop: () => undefined,
      settled: (id) => void settled.push(id),
    },
    onError(error) {
      throw error;
    },
  });
  const begun = ["ws_1", "ws_2", "ws_1", "ws_1"].map((workspaceId, index) =>
    unreported.begin({
      holdId: `gen_${index}`,
      hold: holdOf(workspaceId),
      amountNano: 10n,
      hour: 1,
      tags: [],
    }),
  );
  const ofAnotherRun = unreported.begin({
    holdId: "gen_lost",
    hold: { ...holdOf("ws_1"), era: "run before" },
    amountNano: 10n,
    hour: 1,
    tags: [],
  });
  for (const charge of [...begun, ofAnotherRun]) unreported.reportSoon(charge);
  expect(reported.size).toBe(0);
  await both.promise;
  expect([...reported]).toEqual([
    ["ws_1", ["gen_0", "gen_2", "gen_3"]],
    ["ws_2", ["gen_1"]],
  ]);
  expect(settled).toEqual(["gen_lost"]);
  expect(await unreported.untilNone(60_000)).toBe(true);
});

const nothing = () => ({ inserts: [], adds: [] });

/** @see `docs/decisions/0125-a-charge-is-committed-first.md` */
describe.skipIf(!hasRedis)(
  `charges not yet reported to the shared server (on Valkey and Postgres)${redisMissing}`,
  () => {
    const stage = sharedLedgerStage();

    let count = 0;
    /** Two processes with a workspace of 1,000; reports of the first wait until they are let go. */
    async function start({
      keyLimitNano,
      topupNano = 1_000n,
    }: {
      keyLimitNano?: bigint;
      topupNano?: bigint;
    } = {}) {
      const clock = new FakeClock();
      const workspaceId = `ws_u${(count += 1)}`;
      const [one, other] = [0, 1].map(
        () => new LedgerProcess({ ...stage, workspaceId, clock }),
      ) as [LedgerProcess, LedgerProcess];
      await one.ledger.credit({
        id: `txn_u${count}`,
        workspaceId,
        bucket: "topup",
        amountNano: topupNano,
        kind: "topup",
        reference: null,
      });
      const gate = Promise.withResolvers<void>();
      one.reportsFrom = gate.promise;
      const id = (name: string): string => `gen_${workspaceId}_${name}`;
      return {
        clock,
        one,
        other,
        letReportsGo: async () => {
          gate.resolve();
          await one.untilTold();
        },
        reserve: (process: LedgerProcess, name: string, ceilingNano: bigint) =>
          process.ledger.reserve({
            holdId: id(name),
            workspaceId,
            // What `evict` drops beside the balances.
            keyId: workspaceId,
            keyLimit:
              keyLimitNano === undefined ? null : { limitNano: keyLimitNano, windowHours: 24 },
            ceilingNano,
          }),
        post: (process: LedgerProcess, name: string, amountNano: bigint) =>
          process.ledger.post({ holdId: id(name), amountNano, alongside: nothing }).durable,
        void: (process: LedgerProcess, name: string) => process.ledger.void(id(name)),
      };
    }

    test("do not delay the response; the hold reserves the credits until the report", async () => {
      const { one, other, reserve, post, letReportsGo } = await start();
      await reserve(one, "a", 600n);
      expect(await post(one, "a", 500n)).toMatchObject({
        ok: true,
        chargedNano: 500n,
        balanceAfterNano: 500n,
      });
      expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 500n });
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 1_000n, heldNano: 600n });
      expect(await reserve(other, "b", 1_000n)).toMatchObject({ ok: true, heldNano: 400n });
      await letReportsGo();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 500n, heldNano: 400n });
    });

    test("are counted once, without their hold, when read between the commit and the report", async () => {
      const { one, other, reserve, post, letReportsGo } = await start({ keyLimitNano: 1_000n });
      await reserve(one, "a", 600n);
      await reserve(one, "open", 100n);
      await post(one, "a", 500n);
      await other.evict();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 500n, heldNano: 100n });
      expect(await reserve(other, "b", 1_000n)).toMatchObject({ heldNano: 400n, freeNano: 400n });
      await letReportsGo();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 500n, heldNano: 500n });
      // The key's limit counts the charge once as well.
      await post(one, "open", 100n);
      await post(other, "b", 300n);
      await Promise.all([one, other].map((process) => process.untilTold()));
      expect(await reserve(other, "c", 1_000n)).toMatchObject({ heldNano: 100n, freeNano: 100n });
    });

    test("count as a hold when read before the commit, and as a charge after the report", async () => {
      const { one, other, reserve, post, letReportsGo } = await start({ keyLimitNano: 1_000n });
      await reserve(one, "a", 600n);
      await other.evict();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 1_000n, heldNano: 600n });
      await post(one, "a", 500n);
      await letReportsGo();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 500n, heldNano: 0n });
      expect(await reserve(other, "b", 1_000n)).toMatchObject({ heldNano: 500n, freeNano: 500n });
    });

    test("are reported again as a possible repeat when the response to the report was lost", async () => {
      const { one, other, reserve, post, letReportsGo } = await start();
      one.losesReportAnswers = true;
      await reserve(one, "a", 600n);
      await post(one, "a", 500n);
      await one.ledger.renew();
      await letReportsGo();
      await one.ledger.renew();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 500n, heldNano: 0n });
    });

    test("are counted once if the server lost its data, with or without a renewed hold", async () => {
      for (const isRenewed of [false, true]) {
        const { one, other, reserve, post, letReportsGo } = await start();
        await reserve(one, "a", 600n);
        await post(one, "a", 500n);
        await one.flushAll();
        await other.look();
        if (isRenewed) await one.ledger.renew();
        await other.look();
        await letReportsGo();
        expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 500n, heldNano: 0n });
      }
    });

    test("release their hold if the database refuses the commit", async () => {
      const { one, other, reserve, post } = await start();
      await reserve(one, "a", 600n);
      await one.meet("refused", () => post(one, "a", 500n));
      await one.untilTold();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 1_000n, heldNano: 0n });
    });

    test("share both credit buckets when concurrent, without another database query", async () => {
      const { one, reserve, post, letReportsGo } = await start();
      await one.grant(`txn_ug${count}`, 250n);
      const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
      for (const name of names) await reserve(one, name, 100n);
      const posted = await Promise.all(names.map((name) => post(one, name, 100n)));
      expect(posted.map((each) => each.ok && each.balanceAfterNano)).toEqual(
        names.map((_, index) => 1_150n - 100n * BigInt(index)),
      );
      expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 250n });
      await letReportsGo();
      expect(await one.look()).toEqual({ monthlyNano: 0n, topupNano: 250n, heldNano: 0n });
    });

    test("never let the server offer more than the database balance minus the open holds", async () => {
      const action = fc.record({
        kind: fc.constantFrom("reserve", "reserve", "post", "post", "void", "evict", "renew"),
        amount: fc.bigInt({ min: 1n, max: 300n }),
        isFirst: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(action, { minLength: 4, maxLength: 20 }),
          fc.nat(20),
          // With the second, holds are taken in advance.
          fc.constantFrom(1_000n, 1_000_000n),
          async (actions, letGoAt, topupNano) => {
            const parts = await start({ topupNano });
            const { one, other } = parts;
            const open: { name: string; process: LedgerProcess; heldNano: bigint }[] = [];
            for (const [index, { kind, amount, isFirst }] of actions.entries()) {
              const process = isFirst ? one : other;
              if (index === letGoAt) await parts.letReportsGo();
              if (kind === "evict") await process.evict();
              else if (kind === "renew") await process.ledger.renew();
              else if (kind === "reserve") {
                const name = `h${index}`;
                const outcome = await parts.reserve(process, name, amount);
                if (outcome.ok) open.push({ name, process, heldNano: outcome.heldNano });
              } else {
                const hold = open.shift();
                if (hold === undefined) continue;
                const { heldNano } = hold;
                const costNano = amount < heldNano ? amount : heldNano;
                if (kind === "post") await parts.post(hold.process, hold.name, costNano);
                else parts.void(hold.process, hold.name);
              }
              await other.untilTold();
              const { monthlyNano, topupNano, heldNano } = await other.look();
              const durableNano = (await other.durable()).topupNano;
              const openNano = open.reduce((sum, each) => sum + each.heldNano, 0n);
              expect(monthlyNano + topupNano - heldNano).toBeLessThanOrEqual(
                durableNano - openNano,
              );
            }
            for (const { name, process } of open) parts.void(process, name);
            await parts.letReportsGo();
            await other.untilTold();
            await Promise.all([one, other].map((each) => each.ledger.releaseUnused()));
            expect(await other.look()).toEqual({ ...(await other.durable()), heldNano: 0n });
          },
        ),
        { numRuns: 60 },
      );
    }, 240_000);
  },
);
