import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CreditModel } from "../../../../test/support/credit-model.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LedgerProcess, type CommitFate } from "../../../../test/support/ledger-process.ts";
import { hasRedis, redisMissing } from "../../../../test/support/redis.ts";
import { sharedLedgerStage } from "../../../../test/support/shared-ledger-stage.ts";
import type { SharedState } from "../../../platform/shared-state/shared-state.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { LedgerTables } from "../ledger-store.ts";
import { monthOf } from "../month.ts";
import { leaseMs } from "./shared-accounts.ts";

const nothing = () => ({ inserts: [], adds: [] });

/** Two processes that share a database, a server and a clock. */
class Pair {
  readonly clock = new FakeClock();
  readonly processes: LedgerProcess[];
  readonly parts: { storage: Storage<LedgerTables>; shared: SharedState; workspaceId: string };

  constructor(parts: Pair["parts"]) {
    this.parts = parts;
    this.processes = [0, 1].map(() => new LedgerProcess({ ...parts, clock: this.clock }));
  }

  /**
   * Replaces a process by a new one, as after a crash, while the other process keeps renewing its
   * holds.
   */
  async crash(index: number): Promise<void> {
    this.processes[index] = new LedgerProcess({ ...this.parts, clock: this.clock });
    for (let half = 0; half < 2; half += 1) {
      await Promise.all(this.processes.map(({ ledger }) => ledger.renew()));
      this.clock.advance(leaseMs / 2 + 1);
    }
    await Promise.all(this.processes.map(({ ledger }) => ledger.renew()));
    // The next reservation resolves what the dead process left.
    await this.processes[0]?.hear();
  }
}

describe.skipIf(!hasRedis)(
  `several processes with one balance (on Valkey and Postgres)${redisMissing}`,
  () => {
    const stage = sharedLedgerStage();

    let count = 0;
    const newPair = (): Pair => new Pair({ ...stage, workspaceId: `ws_${count++}` });
    const topUp = (pair: Pair, amountNano: bigint, index = 0): Promise<void> =>
      pair.processes[index]!.ledger.credit({
        id: `txn_t${count++}`,
        workspaceId: pair.parts.workspaceId,
        bucket: "topup",
        amountNano,
        kind: "topup",
        reference: null,
      });

    test("admit 10 of 200 concurrent requests if the balance covers 10, and end at zero", async () => {
      const pair = newPair();
      const { workspaceId } = pair.parts;
      await topUp(pair, 1_000n);
      const served = await Promise.all(
        Array.from({ length: 200 }, async (_, index) => {
          const { ledger } = pair.processes[index % 2]!;
          const holdId = `gen_${workspaceId}_${index}`;
          const outcome = await ledger.reserve({
            holdId,
            workspaceId,
            keyId: "k",
            keyLimit: null,
            ceilingNano: 100n,
          });
          return outcome.ok
            ? ledger.post({ holdId, amountNano: 100n, alongside: nothing }).durable
            : outcome;
        }),
      );
      const charged = served.flatMap((outcome) =>
        "chargedNano" in outcome ? [outcome.chargedNano] : [],
      );
      expect(charged.reduce((sum, amount) => sum + amount, 0n)).toBe(1_000n);
      await Promise.all(pair.processes.map((each) => each.untilTold()));
      expect(await pair.processes[1]!.look()).toMatchObject({ topupNano: 0n, heldNano: 0n });
      expect(await pair.processes[0]!.durable()).toEqual({ monthlyNano: 0n, topupNano: 0n });
    });

    test("see credits that another process added with the next request", async () => {
      const pair = newPair();
      const { workspaceId } = pair.parts;
      const ask = (holdId: string) =>
        pair.processes[1]!.ledger.reserve({
          holdId,
          workspaceId,
          keyId: "k",
          keyLimit: null,
          ceilingNano: 5n,
        });
      expect(await ask("gen_before")).toMatchObject({ ok: false, reason: "insufficient_balance" });
      await topUp(pair, 10n);
      expect(await ask("gen_after")).toMatchObject({ ok: true, heldNano: 5n, balanceNano: 10n });
    });

    test("share the limits of a key and its parent key, also after the server lost its data", async () => {
      const pair = newPair();
      const { workspaceId } = pair.parts;
      await topUp(pair, 10_000n);
      const [keyId, parentId] = [`key_${workspaceId}`, `par_${workspaceId}`];
      const ask = (index: number, holdId: string, ceilingNano = 60n) =>
        pair.processes[index]!.ledger.reserve({
          holdId: `gen_${workspaceId}_${holdId}`,
          workspaceId,
          keyId,
          keyLimit: { limitNano: 100n, windowHours: 24 },
          ceilingNano,
          parent: { keyId: parentId, keyLimit: { limitNano: 150n, windowHours: 24 } },
        });
      const post = (index: number, holdId: string, amountNano: bigint) =>
        pair.processes[index]!.ledger.post({
          holdId: `gen_${workspaceId}_${holdId}`,
          amountNano,
          alongside: nothing,
        }).durable;
      expect([await ask(0, "a"), await ask(1, "b"), await ask(0, "c")]).toMatchObject([
        { ok: true, heldNano: 60n },
        { ok: true, heldNano: 40n },
        { ok: false, reason: "key_limit" },
      ]);
      await post(0, "a", 60n);
      await post(1, "b", 10n);
      await pair.processes[0]!.flushAll();
      expect(await ask(1, "d")).toMatchObject({ ok: true, heldNano: 30n });
      expect(await ask(0, "e")).toMatchObject({ ok: false, reason: "key_limit" });
      pair.clock.advance(26 * 3_600_000);
      expect(await ask(0, "f", 500n)).toMatchObject({ ok: true, heldNano: 100n });
    });

    test("restore balances from the database and holds by renewal after the server lost its data", async () => {
      const pair = newPair();
      const { workspaceId } = pair.parts;
      await topUp(pair, 100n);
      const ask = (index: number, holdId: string) =>
        pair.processes[index]!.ledger.reserve({
          holdId: `gen_${workspaceId}_${holdId}`,
          workspaceId,
          keyId: "k",
          keyLimit: null,
          ceilingNano: 80n,
        });
      await ask(0, "a");
      await pair.processes[0]!.flushAll();
      await pair.processes[0]!.ledger.renew();
      expect(await ask(1, "b")).toMatchObject({ ok: true, heldNano: 20n });
      const posted = await pair.processes[0]!.ledger.post({
        holdId: `gen_${workspaceId}_a`,
        amountNano: 80n,
        alongside: nothing,
      }).durable;
      expect(posted).toMatchObject({ ok: true, chargedNano: 80n, balanceAfterNano: 20n });
      await pair.processes[0]!.untilTold();
      expect(await pair.processes[1]!.look()).toEqual({
        monthlyNano: 0n,
        topupNano: 20n,
        heldNano: 20n,
      });
    });

    test("match the model in random histories of grants, charges, refunds, expiries and crashes", async () => {
      const amount = fc.bigInt({ min: 1n, max: 5_000_000_000n });
      const fate = fc.constantFrom<CommitFate>(
        "works",
        "works",
        "works",
        "refused",
        "crash-before",
        "crash-after",
      );
      const kind = fc.constantFrom(
        "grant",
        "top-up",
        "reserve",
        "reserve",
        "post",
        "post",
        "void",
        "refund",
        "lapse",
        "days",
        "crash",
        "forget",
      );
      const action = fc.record({ kind, amount, fate, index: fc.constantFrom(0, 1) });
      await fc.assert(
        fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 24 }), async (actions) => {
          const history = new SharedHistory(newPair());
          for (const each of actions) await history.act(each);
          await history.expectDatabase();
        }),
        { numRuns: 60 },
      );
    }, 240_000);
  },
);

interface Action {
  kind: string;
  amount: bigint;
  fate: CommitFate;
  index: number;
}

/** Runs actions on two processes in turn, and on the model beside them. */
class SharedHistory {
  private readonly pair: Pair;
  private readonly model = new CreditModel();
  private readonly owners = new Map<string, number>();
  private count = 0;

  constructor(pair: Pair) {
    this.pair = pair;
  }

  async act(action: Action): Promise<void> {
    const { kind, amount, index } = action;
    const { workspaceId } = this.pair.parts;
    const { ledger } = this.pair.processes[index]!;
    const id = `${workspaceId}_${this.count++}`;
    const hold = this.model.openHolds.find((open) => this.owners.get(open) === index);
    if (kind === "reserve") {
      const outcome = await ledger.reserve({
        holdId: `gen_${id}`,
        workspaceId,
        keyId: workspaceId,
        keyLimit: null,
        ceilingNano: amount,
      });
      expect(outcome.ok).toBe(this.model.reserve(`gen_${id}`, amount));
      if (outcome.ok) this.owners.set(`gen_${id}`, index);
    } else if (kind === "void" && hold !== undefined) {
      ledger.void(hold);
      this.model.void(hold);
    } else if (kind === "crash") await this.crash(index);
    else if (kind === "forget") await this.forget();
    else if (kind === "days") this.pair.clock.advance(Number(amount % 20n) * 86_400_000);
    else await this.write(action, { id, hold });
    await this.pair.processes[index]!.untilQuiet();
    await Promise.all(this.pair.processes.map((each) => each.ledger.renew()));
    await this.expectBalances();
  }

  private async write(
    { kind, amount, fate, index }: Action,
    { id, hold }: { id: string; hold: string | undefined },
  ): Promise<void> {
    const { workspaceId } = this.pair.parts;
    const process = this.pair.processes[index]!;
    const month = monthOf(this.pair.clock.nowMs());
    const { model } = this;
    const works: Record<string, [() => Promise<unknown>, () => unknown]> = {
      grant: [() => process.grant(`txn_${id}`, amount), () => model.grant(month, amount)],
      "top-up": [
        () =>
          process.ledger.credit({
            id: `txn_${id}`,
            workspaceId,
            bucket: "topup",
            amountNano: amount,
            kind: "topup",
            reference: null,
          }),
        () => (model.topup += amount),
      ],
      refund: [
        () =>
          process.withdrawals.refund({
            id: `txn_${id}`,
            workspaceId,
            amountNano: amount,
            reference: null,
          }),
        () => model.refund(amount),
      ],
      lapse: [() => process.withdrawals.lapse(workspaceId), () => model.lapse(month)],
      ...(hold !== undefined && {
        post: [
          () =>
            process.ledger.post({ holdId: hold, amountNano: amount, alongside: nothing }).durable,
          () => model.post(hold, amount),
        ],
      }),
    };
    const [work, follow] = works[kind] ?? [];
    if (work === undefined || follow === undefined) return;
    // A process splits a charge over the buckets as it last heard of them.
    if (kind === "post") await process.hear();
    const met = await process.meet(fate, work);
    if (met === "works" || met === "crash-after") follow();
    if (kind === "post" && hold !== undefined) model.void(hold);
    if (met.startsWith("crash")) await this.crash(index);
  }

  private async crash(index: number): Promise<void> {
    for (const hold of this.model.openHolds)
      if (this.owners.get(hold) === index) this.model.void(hold);
    await this.pair.crash(index);
  }

  /** Removes balances and spend from the server, as eviction does. */
  private async forget(): Promise<void> {
    await this.pair.processes[0]!.evict();
  }

  private async expectBalances(): Promise<void> {
    const { monthlySum, topup, held } = this.model;
    expect(await this.pair.processes[0]!.look()).toEqual({
      monthlyNano: monthlySum,
      topupNano: topup,
      heldNano: held,
    });
  }

  /** Expects the model's balances in the database. */
  async expectDatabase(): Promise<void> {
    const { monthlySum, topup } = this.model;
    expect(await this.pair.processes[0]!.durable()).toEqual({
      monthlyNano: monthlySum,
      topupNano: topup,
    });
  }
}
