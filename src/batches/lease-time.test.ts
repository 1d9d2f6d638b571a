import { afterAll, beforeAll, expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { migratedDatabase } from "../../test/support/postgres.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { BatchTables } from "./batch.ts";
import { BatchClock } from "./batch-clock.ts";
import { BatchStore } from "./batch-store.ts";
import { leaseTimeOf } from "./lease-time.ts";
import { batchResultInsert, LineStore } from "./line-store.ts";

let storage: Storage<BatchTables>;
beforeAll(async () => {
  storage = await openStorage({
    url: await migratedDatabase(),
    durability: "power",
    migrations,
    commitStatements: { inserts: [batchResultInsert], adds: [] },
  });
}, 240_000);
afterAll(() => storage.close());

/** The stores of a gateway whose clock shows another time. */
function storesOf(nodeId: string, aheadMs: number) {
  const clock = new FakeClock(Date.now() + aheadMs);
  const { database, commits } = storage;
  const parts = { database, clock, nodeId, leaseTime: leaseTimeOf(clock, { isShared: true }) };
  return {
    batches: new BatchStore({ ...parts, kind: "postgres" }),
    lines: new LineStore({ ...parts, commits }),
  };
}

const asked = {
  workspaceId: "workspace",
  keyId: "key",
  form: "openai",
  endpoint: "/v1/chat/completions",
  completionWindow: "24h",
  windowMs: 86_400_000,
  inputFileId: "file",
  outputExpiresSeconds: null,
  metadata: null,
} as const;

test("a workspace may have a thousand batches open, also where gateways create them at once", async () => {
  const gateways = [storesOf("one", 0), storesOf("other", 0)];
  const create = ({ batches }: (typeof gateways)[number]) =>
    batches.create({ ...asked, workspaceId: "many" }, async () => "sealed");
  for (const each of gateways) await create(each);
  const [row] = await storage.database
    .selectFrom("batches")
    .selectAll()
    .where("workspace_id", "=", "many")
    .execute();
  if (row === undefined) throw new Error("no batch was created");
  const others = Array.from({ length: 996 }, (_, at) => ({ ...row, id: `batch_${at}` }));
  await storage.database.insertInto("batches").values(others).execute();
  const made = await Promise.allSettled(
    Array.from({ length: 6 }, (_, at) => create(gateways[at % 2] as (typeof gateways)[number])),
  );
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  expect(made.find(({ status }) => status === "rejected")).toMatchObject({
    reason: { code: "rate_limit_exceeded" },
  });
});

test("a gateway whose clock is an hour ahead leaves the others' work to them", async () => {
  const own = storesOf("own", 0);
  const ahead = storesOf("ahead", 3_600_000);
  const { id } = await own.batches.create(asked, async () => "sealed");
  async function* two() {
    yield [1, 2].map((line) => ({
      batchId: id,
      line,
      customId: `l${line}`,
      start: 0,
      length: 1,
      tries: 0,
    }));
  }
  await own.lines.replace(id, two());
  expect([await own.batches.lease(id), await ahead.batches.lease(id)]).toEqual([true, false]);
  expect((await own.lines.take(id, 1)).lines.map(({ line }) => line)).toEqual([1]);
  expect((await ahead.lines.take(id, 5)).lines.map(({ line }) => line)).toEqual([2]);
  expect(await ahead.lines.left(id)).toEqual({ undone: 2, running: 2 });
  // The other way round: what a gateway ahead has left is taken once its lease has ended.
  await ahead.lines.renew(id, [2]);
  await storage.database
    .updateTable("batch_lines")
    .set({ leased_until_ms: Date.now() - 1_000 })
    .where("leased_by", "=", "ahead")
    .execute();
  expect((await own.lines.take(id, 5)).lines.map(({ line }) => line)).toEqual([2]);
});

test("batches pause and expire by the time of the leases, wherever a gateway's clock stands", async () => {
  const clockOf = async (aheadMs: number) => {
    const own = new FakeClock(Date.now() + aheadMs);
    const clock = new BatchClock(own, storage.database, leaseTimeOf(own, { isShared: true }));
    await clock.read();
    return { own, clock };
  };
  const [one, other] = [await clockOf(3_600_000), await clockOf(-3_600_000)];
  expect(Math.abs(one.clock.nowMs() - other.clock.nowMs())).toBeLessThan(600_000);
  const nowMs = one.clock.nowMs();
  one.own.advance(1_000);
  expect(one.clock.nowMs()).toBe(nowMs + 1_000);
});
