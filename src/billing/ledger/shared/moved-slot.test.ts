import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LedgerProcess, openLedgerDatabase } from "../../../../test/support/ledger-process.ts";
import { hasRedis, redisMissing } from "../../../../test/support/redis.ts";
import {
  type ClusterServer,
  moveSlot,
  type RedisCluster,
  startRedisCluster,
} from "../../../../test/support/redis-cluster.ts";
import { silentLogger } from "../../../../test/support/silent-logger.ts";
import { partIndexOf, partTags, slotOf } from "../../../platform/shared-state/cluster-slots.ts";
import { openSharedState } from "../../../platform/shared-state/open-shared-state.ts";
import type { SharedPart, SharedParts } from "../../../platform/shared-state/shared-state.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { LedgerTables } from "../ledger-store.ts";

const nothing = () => ({ inserts: [], adds: [] });

/** @see `docs/decisions/0140-a-cluster-in-parts.md` */
describe.skipIf(!hasRedis)(`a workspace with a moving slot (on Valkey)${redisMissing}`, () => {
  let storage: Storage<LedgerTables>;
  let cluster: RedisCluster;
  let shared: [SharedParts, SharedParts];
  beforeAll(async () => {
    [storage, cluster] = await Promise.all([
      openLedgerDatabase(),
      startRedisCluster({ primaries: 2 }),
    ]);
    const open = (): Promise<SharedParts> =>
      openSharedState({ url: cluster.url, logger: silentLogger, waitMs: 60_000 });
    shared = [await open(), await open()];
  }, 240_000);
  afterAll(async () => {
    for (const each of shared) each.close();
    await cluster.stop();
    await storage.close();
  });

  /**
   * Starts two processes that share a workspace with 1,000 nano-USD, and returns functions that
   * move its slot between servers.
   */
  const start = async (workspaceId: string) => {
    const parts = shared.map((each) => each.partOf(workspaceId)) as [SharedPart, SharedPart];
    const clock = new FakeClock();
    const [one, other] = parts.map(
      (part) => new LedgerProcess({ storage, shared: part, workspaceId, clock }),
    ) as [LedgerProcess, LedgerProcess];
    await one.ledger.credit({
      id: `txn_${workspaceId}`,
      workspaceId,
      bucket: "topup",
      amountNano: 1_000n,
      kind: "topup",
      reference: null,
    });
    const slot = slotOf(partTags()[partIndexOf(workspaceId)]!);
    let [from, to] = cluster.primaries as [ClusterServer, ClusterServer];
    if (slot >= 16_384 / 2) [from, to] = [to, from];
    const move = async (): Promise<void> => {
      const begun = parts.map(nextRun);
      await moveSlot(slot, { from, to });
      [from, to] = [to, from];
      for (const { life } of [one, other]) await life.beat();
      await Promise.all(begun);
    };
    const id = (name: string): string => `gen_${workspaceId}_${name}`;
    const reserve = ({ ledger }: LedgerProcess, name: string, ceilingNano: bigint) =>
      ledger.reserve({ holdId: id(name), workspaceId, keyId: "k", keyLimit: null, ceilingNano });
    const post = (process: LedgerProcess, name: string, amountNano: bigint) =>
      process.ledger.post({ holdId: id(name), amountNano, alongside: nothing }).durable;
    return { one, other, move, reserve, post };
  };

  test("does not regain spent credits when its slot moves back", async () => {
    const { one, other, move, reserve, post } = await start("ws_back");
    await reserve(one, "a", 600n);
    await post(one, "a", 600n);
    await one.untilTold();
    await move();
    expect(await reserve(other, "b", 300n)).toMatchObject({ ok: true, heldNano: 300n });
    await post(other, "b", 300n);
    await other.untilTold();
    await move();
    expect(await reserve(one, "c", 1_000n)).toMatchObject({ ok: true, heldNano: 100n });
    expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 100n, heldNano: 100n });
  }, 240_000);

  test("keeps its holds when its slot moves, and charges them on the new server", async () => {
    const { one, other, move, reserve, post } = await start("ws_held");
    await reserve(one, "a", 400n);
    await move();
    await one.ledger.renew();
    expect(await reserve(other, "b", 1_000n)).toMatchObject({ ok: true, heldNano: 600n });
    expect(await post(one, "a", 400n)).toMatchObject({ chargedNano: 400n, uncollectedNano: 0n });
    await one.untilTold();
    expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 600n, heldNano: 600n });
    expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 600n });
  }, 240_000);
});

/** Resolves when a part whose run is known starts another one. */
const nextRun = (part: SharedPart): Promise<void> =>
  new Promise((resolve) => {
    const { runId } = part;
    const forget = part.onRun((run) => {
      if (run === runId) return;
      queueMicrotask(() => forget());
      resolve();
    });
  });
