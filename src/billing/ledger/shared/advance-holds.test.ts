import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LedgerProcess } from "../../../../test/support/ledger-process.ts";
import { hasRedis, redisMissing } from "../../../../test/support/redis.ts";
import { sharedLedgerStage } from "../../../../test/support/shared-ledger-stage.ts";
import type { ReserveOutcome, TightHold } from "../hold-rule.ts";
import type { PostedCharge } from "../ledger-port.ts";
import { nodeLeaseMs } from "./node-lease.ts";

/** @see `docs/decisions/0145-holds-and-windows-in-advance.md` */
describe.skipIf(!hasRedis)(
  `holds that are taken in advance (on Valkey and Postgres)${redisMissing}`,
  () => {
    const stage = sharedLedgerStage();

    let count = 0;
    /** Starts two processes that share a workspace with 1,000,000 nano-USD. */
    async function start() {
      const clock = new FakeClock();
      const workspaceId = `ws_advance${(count += 1)}`;
      const [one, other] = [0, 1].map(
        () => new LedgerProcess({ ...stage, workspaceId, clock }),
      ) as [LedgerProcess, LedgerProcess];
      await one.ledger.credit({
        id: `txn_advance${count}`,
        workspaceId,
        bucket: "topup",
        amountNano: 1_000_000n,
        kind: "topup",
        reference: null,
      });
      let requests = 0;
      const newId = (): string => `gen_${workspaceId}_${(requests += 1)}`;
      const reserve = (
        process: LedgerProcess,
        ceilingNano: bigint,
        { limitNano, tight }: { limitNano?: bigint; tight?: () => TightHold } = {},
      ): { holdId: string; outcome: ReserveOutcome | Promise<ReserveOutcome> } => {
        const holdId = newId();
        const keyLimit = limitNano === undefined ? null : { limitNano, windowHours: 24 };
        const outcome = process.ledger.reserve({
          holdId,
          workspaceId,
          keyId: `key_${workspaceId}`,
          keyLimit,
          ceilingNano,
          tight,
        });
        return { holdId, outcome };
      };
      /** Reserves until a hold in advance serves a request; returns the id of that request. */
      const reserveUntilAtOnce = async (process: LedgerProcess): Promise<string> => {
        for (;;) {
          const { holdId, outcome } = reserve(process, 100n);
          if (!(outcome instanceof Promise)) return holdId;
          await outcome;
          process.ledger.void(holdId);
          await process.untilTold();
        }
      };
      return { clock, one, other, workspaceId, reserve, reserveUntilAtOnce };
    }

    test("serve frequent requests without a round trip, and each request is charged once", async () => {
      const { one, other, reserve } = await start();
      const told: PostedCharge[] = [];
      let atOnce = 0;
      for (let index = 0; index < 200; index += 1) {
        const { holdId, outcome } = reserve(one, 100n);
        if (!(outcome instanceof Promise)) atOnce += 1;
        expect(await outcome).toMatchObject({ ok: true, heldNano: 100n });
        const alongside = (posted: PostedCharge) => {
          told.push(posted);
          return { inserts: [], adds: [] };
        };
        expect(await one.ledger.post({ holdId, amountNano: 30n, alongside }).durable).toMatchObject(
          {
            ok: true,
            chargedNano: 30n,
          },
        );
      }
      expect(atOnce).toBeGreaterThan(150);
      expect(new Set(told.map(({ chargeId }) => chargeId)).size).toBeGreaterThan(150);
      await one.untilTold();
      await one.ledger.releaseUnused();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 994_000n, heldNano: 0n });
      expect(await other.durable()).toEqual({ monthlyNano: 0n, topupNano: 994_000n });
    });

    test("are not used near a limit, and the limit admits exactly its number of requests", async () => {
      const { one, other, reserve } = await start();
      const limit = { limitNano: 6_400n };
      let admitted = 0;
      for (let index = 0; index < 100; index += 1) {
        const { outcome } = reserve(index % 2 === 0 ? one : other, 100n, limit);
        expect(outcome).toBeInstanceOf(Promise);
        if ((await outcome).ok) admitted += 1;
      }
      expect(admitted).toBe(64);
    });

    test("are released after three seconds without use", async () => {
      const { clock, one, reserveUntilAtOnce } = await start();
      one.ledger.void(await reserveUntilAtOnce(one));
      await one.untilTold();
      expect((await one.look()).heldNano).toBeGreaterThan(0n);
      clock.advance(3_001);
      while ((await one.look()).heldNano > 0n) await Bun.sleep(1);
    });

    test("are used by a request of the same process that needs the whole balance", async () => {
      const { one, reserve, reserveUntilAtOnce } = await start();
      one.ledger.void(await reserveUntilAtOnce(one));
      await one.untilTold();
      const tight = (): TightHold => ({
        beginNano: 1_000_000n,
        leastNano: 1_000_000n,
        takesShare: false,
      });
      expect(await reserve(one, 1_000_000n, { tight }).outcome).toMatchObject({
        ok: true,
        heldNano: 1_000_000n,
      });
    });

    test("do not serve requests above a limit that was lowered", async () => {
      const { one, reserve } = await start();
      for (let index = 0; index < 20; index += 1)
        await reserve(one, 100n, { limitNano: 100_000n }).outcome;
      expect(await reserve(one, 100n, { limitNano: 2_000n }).outcome).toMatchObject({
        ok: false,
        reason: "key_limit",
      });
    });

    test("are released when the lease of a dead process expires", async () => {
      const { clock, one, other, reserve, reserveUntilAtOnce } = await start();
      await Promise.all([one.life.beat(), other.life.beat()]);
      await reserveUntilAtOnce(one);
      clock.advance(nodeLeaseMs - 1);
      await other.life.beat();
      clock.advance(2);
      const tight = (): TightHold => ({
        beginNano: 1_000_000n,
        leastNano: 1_000_000n,
        takesShare: false,
      });
      expect(await reserve(other, 1_000_000n, { tight }).outcome).toMatchObject({
        ok: true,
        heldNano: 1_000_000n,
      });
    });

    test("do not reduce a charge that is higher than the amount held in advance", async () => {
      const { one, other, reserveUntilAtOnce } = await start();
      const holdId = await reserveUntilAtOnce(one);
      const alongside = () => ({ inserts: [], adds: [] });
      expect(
        await one.ledger.post({ holdId, amountNano: 5_000n, alongside }).durable,
      ).toMatchObject({
        ok: true,
        chargedNano: 5_000n,
      });
      await one.untilTold();
      await one.ledger.releaseUnused();
      expect(await other.look()).toEqual({ ...(await other.durable()), heldNano: 0n });
      expect(await other.durable()).toEqual({ monthlyNano: 0n, topupNano: 995_000n });
    });
  },
);
