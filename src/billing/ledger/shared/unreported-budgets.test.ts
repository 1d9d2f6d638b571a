import { describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LedgerProcess } from "../../../../test/support/ledger-process.ts";
import { hasRedis, redisMissing } from "../../../../test/support/redis.ts";
import { sharedLedgerStage } from "../../../../test/support/shared-ledger-stage.ts";
import { BlockingBudgets } from "../../budgets/blocking-budgets.ts";
import { budgetTags, type Budget } from "../../budgets/budget.ts";
import type { SpentBy } from "../../budgets/budget-watch.ts";

const budgetOf = (workspaceId: string, limitNano: bigint): Budget => ({
  id: `bud_${workspaceId}`,
  workspaceId,
  name: "all",
  scope: "workspace",
  subject: null,
  period: "monthly",
  timeZone: null,
  action: "block",
  limitNano,
  thresholds: [100],
  emails: [],
  webhookUrl: null,
  secretVersion: 1,
  createdAtMs: 0,
  updatedAtMs: null,
});

/** @see `docs/decisions/0125-a-charge-is-committed-first.md` */
describe.skipIf(!hasRedis)(
  `budget sums with unreported charges (on Valkey and Postgres)${redisMissing}`,
  () => {
    const stage = sharedLedgerStage();

    let count = 0;
    /** Starts two processes that share a balance of 10,000 nano-USD and a budget of 1,000. */
    async function start() {
      const workspaceId = `ws_b${(count += 1)}`;
      const blocking = new BlockingBudgets();
      blocking.put(budgetOf(workspaceId, 1_000n));
      /**
       * Called after a reading has its snapshot of the database, and before it asks for charges.
       */
      const duringReading = { run: async (): Promise<void> => undefined };
      const spentBy: SpentBy = async (_query, reading) => {
        const { rows } = await sql<{ spent: string }>`
          select coalesce(sum(amount_nano), 0) as spent from transfers
          where debit_account = ${`${workspaceId}:topup`} and kind = 'charge'`.execute(
          reading ?? stage.storage.database,
        );
        await duringReading.run();
        return BigInt(rows[0]?.spent ?? 0);
      };
      const clock = new FakeClock();
      const [one, other] = [0, 1].map(
        () => new LedgerProcess({ ...stage, workspaceId, clock, blocking, spentBy }),
      ) as [LedgerProcess, LedgerProcess];
      await one.ledger.credit({
        id: `txn_b${count}`,
        workspaceId,
        bucket: "topup",
        amountNano: 10_000n,
        kind: "topup",
        reference: null,
      });
      const gate = Promise.withResolvers<void>();
      one.reportsFrom = gate.promise;
      const tags = () =>
        budgetTags({
          keyIds: [workspaceId],
          userId: "usr_1",
          models: ["acme/large"],
          providers: ["acme"],
        });
      const id = (name: string): string => `gen_${workspaceId}_${name}`;
      return {
        one,
        other,
        duringReading,
        letReportsGo: async () => {
          gate.resolve();
          await one.untilTold();
        },
        reserve: (process: LedgerProcess, name: string, ceilingNano: bigint) =>
          process.ledger.reserve({
            holdId: id(name),
            workspaceId,
            keyId: workspaceId,
            keyLimit: null,
            ceilingNano,
            tags,
          }),
        post: (process: LedgerProcess, name: string, amountNano: bigint) =>
          process.ledger.post({
            holdId: id(name),
            amountNano,
            tags,
            alongside: () => ({ inserts: [], adds: [] }),
          }).durable,
        void: (process: LedgerProcess, name: string) => process.ledger.void(id(name)),
      };
    }

    /**
     * Returns the free amount of the budget, from a hold that takes all of it and is freed again.
     */
    async function freeOf(parts: Awaited<ReturnType<typeof start>>): Promise<bigint> {
      const { other } = parts;
      const name = `free${(count += 1)}`;
      const { ok, freeNano } = await parts.reserve(other, name, 9_000n);
      if (ok) parts.void(other, name);
      await other.untilTold();
      return freeNano;
    }

    test("count the hold until the charge is reported, and then the charge", async () => {
      const parts = await start();
      await parts.reserve(parts.one, "a", 600n);
      await parts.post(parts.one, "a", 500n);
      expect(await freeOf(parts)).toBe(400n);
      await parts.letReportsGo();
      expect(await freeOf(parts)).toBe(500n);
    });

    test("count the charge once when read between the commit and the report", async () => {
      const parts = await start();
      await parts.reserve(parts.one, "a", 600n);
      await parts.post(parts.one, "a", 500n);
      await parts.other.evict();
      expect(await freeOf(parts)).toBe(500n);
      await parts.letReportsGo();
      expect(await freeOf(parts)).toBe(500n);
    });

    test("count a charge that is committed during the read when it is reported", async () => {
      const parts = await start();
      await parts.reserve(parts.one, "a", 600n);
      await parts.other.evict();
      parts.duringReading.run = async () => {
        parts.duringReading.run = async () => undefined;
        await parts.post(parts.one, "a", 500n);
      };
      expect(await freeOf(parts)).toBe(400n);
      await parts.letReportsGo();
      expect(await freeOf(parts)).toBe(500n);
    });

    test("count a charge once when it is committed and reported during the read", async () => {
      const parts = await start();
      await parts.reserve(parts.one, "a", 600n);
      await parts.other.evict();
      parts.duringReading.run = async () => {
        parts.duringReading.run = async () => undefined;
        await parts.post(parts.one, "a", 500n);
        await parts.letReportsGo();
      };
      expect(await freeOf(parts)).toBe(500n);
    });

    test("count an earlier charge once when it is reported during the read", async () => {
      const parts = await start();
      await parts.reserve(parts.one, "a", 600n);
      await parts.post(parts.one, "a", 500n);
      await parts.other.evict();
      parts.duringReading.run = async () => {
        parts.duringReading.run = async () => undefined;
        await parts.letReportsGo();
      };
      expect(await freeOf(parts)).toBe(500n);
    });
  },
);
