import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { LedgerProcess, openLedgerDatabase } from "../../../../test/support/ledger-process.ts";
import {
  hasRedis,
  redisMissing,
  startRedis,
  startSentinel,
  untilSentinel,
} from "../../../../test/support/redis.ts";
import { silentLogger } from "../../../../test/support/silent-logger.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import { SharedState } from "../../../platform/shared-state/shared-state.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { LedgerTables } from "../ledger-store.ts";

const name = "mymaster";
const workspaceId = "ws_back";
const nothing = () => ({ inserts: [], adds: [] });

/** @see `docs/decisions/0122-sentinels-name-the-primary.md` */
describe.skipIf(!hasRedis)(`a primary that is replaced and later returns${redisMissing}`, () => {
  let storage: Storage<LedgerTables>;
  let servers: { kill(): Promise<void> }[];
  let sentinelUrl: string;
  let shared: SharedState;
  beforeAll(async () => {
    storage = await openLedgerDatabase();
    const primary = await startRedis({});
    const { port } = new URL(primary.url);
    const replica = await startRedis({ replicaof: `127.0.0.1 ${port}` });
    const sentinel = await startSentinel(name, primary.url, [
      `sentinel down-after-milliseconds ${name} 60000`,
      `sentinel failover-timeout ${name} 120000`,
    ]);
    servers = [primary, replica, sentinel];
    sentinelUrl = sentinel.url;
    await untilSentinel(Number(new URL(sentinelUrl).port), name, { replicas: 1, sentinels: 0 });
    const server = { url: `redis://${name}`, sentinels: [sentinelUrl] };
    shared = await SharedState.open({ ...server, logger: silentLogger, waitMs: 60_000 });
  }, 600_000);
  afterAll(async () => {
    shared.close();
    for (const server of servers) await server.kill();
    await storage.close();
  });

  /** Returns the `run_id` of the server that is in use. */
  const serverInUse = (): string => (shared.runId ?? "").split(".")[0] ?? "";

  /** Resolves once the sentinel made the replica the primary, and the gateway uses it. */
  const failOver = async (): Promise<void> => {
    const before = serverInUse();
    const replaced = new Promise<void>((resolve) => {
      const forget = shared.onRun(() => {
        if (serverInUse() === before) return;
        queueMicrotask(() => forget());
        resolve();
      });
    });
    const client = new Redis(sentinelUrl);
    // Refused while the sentinel does not know the former primary as a replica yet.
    for (let isBegun = false; !isBegun; )
      isBegun = await client.call("SENTINEL", "FAILOVER", name).then(
        () => true,
        () => Bun.sleep(50).then(() => false),
      );
    await replaced;
    client.disconnect();
  };

  test("does not restore credits that were spent on the other server", async () => {
    const process = new LedgerProcess({ storage, shared, workspaceId, clock: new FakeClock() });
    await process.ledger.credit({
      id: "txn_back",
      workspaceId,
      bucket: "topup",
      amountNano: 1_000n,
      kind: "topup",
      reference: null,
    });
    let requests = 0;
    const spend = async (amountNano: bigint): Promise<void> => {
      const holdId = `gen_back_${(requests += 1)}`;
      const key = { keyId: "k", keyLimit: null };
      const outcome = await process.ledger.reserve({
        holdId,
        workspaceId,
        ...key,
        ceilingNano: amountNano,
      });
      // The sentinel may close connections once more while it sets servers up.
      if (!outcome.ok && outcome.reason === "away") return spend(amountNano);
      expect(outcome).toMatchObject({ ok: true, heldNano: amountNano });
      await process.ledger.post({ holdId, amountNano, alongside: nothing }).durable;
      await process.untilTold();
    };
    await spend(600n);
    const first = serverInUse();
    await failOver();
    await spend(300n);
    await failOver();
    expect(serverInUse()).toBe(first);
    const looked = await untilAnswered(() => process.look());
    expect(looked).toEqual({ monthlyNano: 0n, topupNano: 100n, heldNano: 0n });
  }, 600_000);
});

/** Asks until the server answers. */
async function untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask().catch((error: unknown) => {
      if (!(error instanceof SharedStateAwayError)) throw error;
    });
    if (answer !== undefined) return answer;
    await Bun.sleep(10);
  }
}
