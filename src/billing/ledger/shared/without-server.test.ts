import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LedgerProcess } from "../../../../test/support/ledger-process.ts";
import { hasRedis, redisMissing } from "../../../../test/support/redis.ts";
import { sharedLedgerStage } from "../../../../test/support/shared-ledger-stage.ts";
import { isOverdrawn } from "../../../platform/storage/storage-error.ts";
import { accountAdd, creditUnit } from "../transfer.ts";
import { nodeLeaseMs } from "./node-lease.ts";

const nothing = () => ({ inserts: [], adds: [] });

describe.skipIf(!hasRedis)(
  `an unreachable shared server (on Valkey and Postgres)${redisMissing}`,
  () => {
    const stage = sharedLedgerStage();

    let count = 0;
    /** Starts two processes, both alive, that share a workspace with 1,000 nano-USD. */
    async function start() {
      const clock = new FakeClock();
      const workspaceId = `ws_${(count += 1)}`;
      const [one, other] = [0, 1].map(
        () => new LedgerProcess({ ...stage, workspaceId, clock }),
      ) as [LedgerProcess, LedgerProcess];
      await one.ledger.credit({
        id: `txn_c${count}`,
        workspaceId,
        bucket: "topup",
        amountNano: 1_000n,
        kind: "topup",
        reference: null,
      });
      const id = (name: string): string => `gen_${workspaceId}_${name}`;
      return {
        clock,
        workspaceId,
        one,
        other,
        beat: () => Promise.all([one, other].map(({ life }) => life.beat())),
        reserve: (process: LedgerProcess, name: string, ceilingNano: bigint) =>
          process.ledger.reserve({
            holdId: id(name),
            workspaceId,
            keyId: "k",
            keyLimit: null,
            ceilingNano,
          }),
        post: (process: LedgerProcess, name: string, amountNano: bigint) =>
          process.ledger.post({ holdId: id(name), amountNano, alongside: nothing }).durable,
      };
    }

    test("lets a hold be charged in the database, at most in full, and reads the charge when it is back", async () => {
      const { one, other, beat, reserve, post } = await start();
      await beat();
      await reserve(one, "a", 600n);
      await reserve(other, "b", 400n);
      one.isAway = true;
      expect(await post(one, "a", 700n)).toMatchObject({
        ok: true,
        chargedNano: 600n,
        uncollectedNano: 100n,
      });
      expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 400n });
      // The server still counts the hold, so that no other process spends its credits.
      expect(await reserve(other, "c", 10n)).toMatchObject({
        ok: false,
        reason: "insufficient_balance",
      });
      one.isAway = false;
      await one.untilTold();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 400n, heldNano: 400n });
      expect(await post(other, "b", 400n)).toMatchObject({
        chargedNano: 400n,
        uncollectedNano: 0n,
      });
      expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 0n });
    });

    test("gives no credits to a hold request that it receives late", async () => {
      const { one, other, reserve } = await start();
      one.isAway = true;
      expect(await reserve(one, "late", 900n)).toMatchObject({ ok: false, reason: "away" });
      one.isAway = false;
      await one.untilTold();
      // The server runs the same script late, as where it was still in the server's buffers.
      expect(await reserve(one, "late", 900n)).toMatchObject({ ok: false, reason: "exists" });
      expect(await reserve(other, "next", 1_000n)).toMatchObject({ ok: true, heldNano: 1_000n });
    });

    test("lets a charge take the remaining balance in the database, never below zero", async () => {
      const { one, other, workspaceId, reserve, post } = await start();
      await reserve(one, "a", 600n);
      // The database loses credits without the server's knowledge, as where a backup is restored.
      await stage.storage.commits.commit({
        inserts: [],
        adds: [{ statement: accountAdd, key: [`${workspaceId}:topup`], sums: [-900] }],
      });
      expect(await post(one, "a", 600n)).toMatchObject({
        ok: true,
        chargedNano: 100n,
        uncollectedNano: 500n,
      });
      await one.untilTold();
      expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 0n, heldNano: 0n });
      const below = stage.storage.commits.commit({
        inserts: [],
        adds: [{ statement: accountAdd, key: [`${workspaceId}:monthly`], sums: [-1] }],
      });
      expect(await below.then(() => undefined, isOverdrawn)).toBe(true);
      expect(stage.storage.commits.admits()).toBe(true);
    });

    test("lets concurrent charges from both buckets take exactly what each bucket has", async () => {
      const { one, workspaceId, reserve, post, clock } = await start();
      const grant = {
        id: `txn_m${count}`,
        workspaceId,
        bucket: "monthly",
        amountNano: 250n,
        kind: "grant",
        reference: null,
      } as const;
      await stage.storage.commits.commit(creditUnit(grant, clock.nowMs()));
      const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
      for (const name of names) await reserve(one, name, 100n);
      one.isAway = true;
      const posted = await Promise.all(names.map((name) => post(one, name, 100n)));
      expect(posted).toMatchObject(
        names.map(() => ({ ok: true, chargedNano: 100n, uncollectedNano: 0n })),
      );
      expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 250n });
      one.isAway = false;
      await one.untilTold();
    });

    test("releases the holds of a dead process only after its lease expires", async () => {
      const { one, other, beat, reserve, clock } = await start();
      await beat();
      await reserve(one, "a", 600n);
      clock.advance(nodeLeaseMs - 1);
      await other.life.beat();
      expect(await reserve(other, "b", 1_000n)).toMatchObject({ ok: true, heldNano: 400n });
      other.ledger.void(`gen_ws_${count}_b`);
      clock.advance(2);
      expect(await reserve(other, "c", 1_000n)).toMatchObject({ ok: true, heldNano: 1_000n });
    });

    test("leaves a process sure of its lease for half of it after the last acknowledged beat", async () => {
      const { one, clock } = await start();
      expect(one.isSure).toBe(false);
      await one.life.beat();
      clock.advance(nodeLeaseMs / 2 - 1);
      expect(one.isSure).toBe(true);
      one.isAway = true;
      await one.life.beat();
      clock.advance(1);
      expect(one.isSure).toBe(false);
    });

    test("counts charges that a process committed to the database before it died", async () => {
      const { one, other, beat, reserve, post, clock } = await start();
      await beat();
      await reserve(one, "a", 600n);
      one.isAway = true;
      expect(await post(one, "a", 600n)).toMatchObject({ chargedNano: 600n });
      clock.advance(nodeLeaseMs + 1);
      await other.life.beat();
      // The gateway that asks was not alive either, as after a suspension of the server. So the
      // dead have the duration of a lease to return.
      expect(await reserve(other, "b", 1_000n)).toMatchObject({ ok: true, heldNano: 400n });
      clock.advance(nodeLeaseMs / 2);
      await other.life.beat();
      clock.advance(nodeLeaseMs / 2 + 1);
      expect(await reserve(other, "c", 1n)).toMatchObject({
        ok: false,
        reason: "insufficient_balance",
        balanceNano: 400n,
      });
    });

    test("keeps the holds of processes that return after the server was suspended", async () => {
      const { one, other, beat, reserve, clock } = await start();
      await beat();
      await reserve(one, "a", 600n);
      clock.advance(60_000);
      await other.life.beat();
      expect(await reserve(other, "b", 1_000n)).toMatchObject({ ok: true, heldNano: 400n });
      await one.life.beat();
      clock.advance(nodeLeaseMs - 1);
      await beat();
      clock.advance(2);
      expect(await reserve(other, "c", 1n)).toMatchObject({
        ok: false,
        reason: "insufficient_balance",
      });
    });
  },
);
