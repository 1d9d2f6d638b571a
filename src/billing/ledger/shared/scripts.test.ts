import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import {
  hasRedis,
  redisMissing,
  startRedis,
  type RedisServer,
} from "../../../../test/support/redis.ts";

const folder = join(import.meta.dir, "scripts");
const textOf = (name: string): string => readFileSync(join(folder, `${name}.lua`), "utf8");
const names = readdirSync(folder).map((file) => file.replace(".lua", ""));
const bodies = names.filter((name) => name !== "prelude");

/** The key of a workspace without a parent, with a limit in nano-USD (-1 for none). */
const keyValues = (limitNano: number) => ["k1", limitNano, 0, 0, "", -1, 0, 0];
const hour = 1_000;

/** Each script as it is, on a server of its own: what it answers, and what it leaves. */
describe.skipIf(!hasRedis)(`the scripts of the shared ledger${redisMissing}`, () => {
  let server: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.url);
  });
  afterAll(async () => {
    client.disconnect();
    await server.kill();
  });
  beforeEach(() => client.flushall());

  /** Runs a script for workspace `ws` at a wall time of 10 s, with leases of 6 s. */
  const run = async (name: string, ...values: (string | number)[]): Promise<unknown> =>
    client.eval(textOf("prelude") + textOf(name), 0, "t:", "ws", 10_000, 6_000, "node", ...values);
  /** Fills the figures of the workspace (monthly and top-up balance) and of its key. */
  const seed = (monthlyNano: number, topUpNano: number) =>
    run("seed", "", `${monthlyNano}|${topUpNano}|0|0`, "[]", "k1", "[]");
  const reserve = (
    id: string,
    ceilingNano: number,
    { limitNano = -1, admitted = "", ahead = "", eachNano = 0 } = {},
  ) => {
    const amount = [ceilingNano, ceilingNano, 1, 0];
    const others = ["0", "", admitted, ahead, eachNano];
    return run("reserve", id, hour, ...amount, 0, 0, 0, 0, ...keyValues(limitNano), ...others);
  };
  const post = (id: string, amountNano: number) =>
    run("post", id, hour, amountNano, 0, ...keyValues(-1), "0", "");
  const held = async () => Number(await client.hget("t:w:ws", "h"));

  test.each(bodies)("%s.lua compiles behind the prelude", async (name) => {
    expect(await client.script("LOAD", textOf("prelude") + textOf(name))).toMatch(/^[0-9a-f]{40}$/);
  });

  test("reserve names the figures that it lacks", async () => {
    expect(await reserve("h1", 100)).toMatchObject({ 0: "unknown", 2: '["","k1"]' });
  });

  test("reserve takes the ceiling where eight of them are free, and void frees it", async () => {
    await seed(300, 700);
    expect(await reserve("h1", 100)).toMatchObject({ 0: "ok", 2: "300", 3: "700" });
    expect([await held(), await client.hexists("t:h:ws", "h1")]).toEqual([100, 1]);
    expect(Number(await client.hget("t:k:k1", "h"))).toBe(100);
    await run("void", "h1");
    expect([await held(), await client.hexists("t:h:ws", "h1")]).toEqual([0, 0]);
  });

  test("reserve refuses what is not free, and says what other requests hold", async () => {
    await seed(0, 100);
    expect(await reserve("h1", 100)).toMatchObject({ 0: "ok" });
    expect(await reserve("h2", 100)).toMatchObject({ 0: "insufficient_balance", 1: "0|100" });
    expect(await held()).toBe(100);
  });

  test("reserve refuses beyond the limit of the key", async () => {
    await seed(0, 10_000);
    expect(await reserve("h1", 50, { limitNano: 50 })).toMatchObject({ 0: "ok" });
    expect(await reserve("h2", 50, { limitNano: 50 })).toMatchObject({ 0: "key_limit" });
  });

  test("reserve takes each id once, and nothing where the windows did not admit", async () => {
    await seed(0, 10_000);
    expect(await reserve("h1", 10)).toMatchObject({ 0: "ok" });
    expect(await reserve("h1", 10)).toMatchObject({ 0: "exists" });
    expect(await reserve("h2", 10, { admitted: "t:admitted" })).toMatchObject({
      0: "not_admitted",
    });
    expect(await held()).toBe(10);
  });

  test("reserve takes holds in advance out of a 64th of what is free", async () => {
    await seed(0, 64_010);
    await reserve("h1", 10, { ahead: "a1,a2,a3", eachNano: 400 });
    expect(await client.hexists("t:h:ws", "a1")).toBe(1);
    expect(await client.hkeys("t:h:ws")).toHaveLength(3);
    expect(await held()).toBe(810);
  });

  test("post charges the monthly bucket first, frees the hold, and charges once", async () => {
    await seed(30, 970);
    await reserve("h1", 100);
    const charged = ["ok", "30|20|k1||0|1000|0||node", "0", "950"];
    expect(await post("h1", 50)).toEqual(charged);
    expect(await post("h1", 50)).toEqual(charged);
    expect([await held(), await client.hget("t:k:k1", `s${hour}`)]).toEqual([0, "50"]);
  });

  test("post charges at most what is there", async () => {
    await seed(0, 40);
    await reserve("h1", 40);
    expect(await post("h1", 90)).toMatchObject({ 0: "ok", 2: "0", 3: "0" });
  });

  test("post charges what was held, and beyond it only what the limits leave", async () => {
    await seed(0, 1_000);
    await reserve("h1", 80);
    const charged = await run("post", "h1", hour, 90, 0, ...keyValues(10), "0", "");
    expect(charged).toMatchObject({ 0: "ok", 2: "0", 3: "920" });
  });
});
