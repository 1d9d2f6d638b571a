import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { hasRedis, redisMissing } from "../../../test/support/redis.ts";
import {
  beginMove,
  type ClusterServer,
  endMove,
  moveNames,
  moveSome,
  moveSlot,
  type RedisCluster,
  startRedisCluster,
} from "../../../test/support/redis-cluster.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { slotOf } from "./cluster-slots.ts";
import { openSharedState } from "./open-shared-state.ts";
import { SharedChannel } from "./shared-channel.ts";
import { SharedLeases } from "./shared-leases.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import type { SharedPart, SharedParts } from "./shared-state.ts";
import { SharedValues } from "./shared-values.ts";
import type { SharedScript } from "./redis-client.ts";

const open = (url: string): Promise<SharedParts> =>
  openSharedState({ url, logger: silentLogger, waitMs: 60_000 });

/** Increments two keys in one step and returns both counts. */
const pairScript: SharedScript = {
  name: "switchyardTestPair",
  lua: "return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])}",
};

const countPair = (part: SharedPart, ...values: string[]): Promise<unknown> =>
  part.run(pairScript, { keys: ["one", "two"], values });

/** Returns the next run of a part, once it differs from the run before. */
const nextRun = (part: SharedPart, before: string | undefined): Promise<string> =>
  new Promise((resolve) => {
    const forget = part.onRun((run) => {
      if (run === before) return;
      queueMicrotask(() => forget());
      resolve(run);
    });
  });

const slotIn = ({ prefix }: SharedPart): number => slotOf(/\{(\w+)\}/.exec(prefix)?.[1] ?? "");

describe.skipIf(!hasRedis)(`shared state in a cluster (on Valkey)${redisMissing}`, () => {
  let cluster: RedisCluster;
  let first: ClusterServer;
  let second: ClusterServer;
  let shared: SharedParts;
  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 2 });
    [first, second] = cluster.primaries as [ClusterServer, ClusterServer];
    shared = await open(cluster.url);
  }, 240_000);
  afterAll(async () => {
    shared.close();
    await cluster.stop();
  });

  test("keeps the names of each part in one slot, and half of the parts on each server", async () => {
    const slots = shared.parts.map(slotIn);
    expect(new Set(slots).size).toBe(shared.parts.length);
    expect(slots.filter((slot) => slot < 16_384 / 2)).toHaveLength(shared.parts.length / 2);
    for (const part of shared.parts) expect(await countPair(part)).toEqual([1, 1]);
    expect(new Set(shared.parts.map(({ runId }) => runId?.split(".")[0])).size).toBe(2);
  });

  test("passes keys and values to scripts", async () => {
    const script: SharedScript = {
      name: "switchyardTestEcho",
      lua: "return {#KEYS, #ARGV, KEYS[1], ARGV[1], ARGV[2]}",
    };
    const part = shared.partOf("ws_1");
    const answer = await part.run(script, { keys: ["a"], values: ["x", 7] });
    expect(answer).toEqual([1, 2, `${part.prefix}a`, "x", "7"]);
    expect(await part.run(script, { keys: [], values: [] })).toEqual([0, 0]);
  });

  test("shares values, leases and single texts across all parts", async () => {
    const other = await open(cluster.url);
    const valuesIn = (from: SharedParts) =>
      new SharedValues<string>({ shared: from, name: "test", bytesMax: 64_000_000 });
    const leasesOf = (nodeId: string, from: SharedParts): SharedLeases =>
      new SharedLeases({
        shared: from,
        nodeId,
        clock: new FakeClock(),
        onError: (error) => {
          throw error;
        },
      });
    const [mine, theirs] = [leasesOf("one", shared), leasesOf("other", other)];
    for (const name of ["a", "b", "c", "d", "e", "f"]) {
      await valuesIn(shared).set(name, `text of ${name}`, 60);
      expect(await valuesIn(other).get(name)).toBe(`text of ${name}`);
      expect([await mine.take(name), await theirs.take(name)]).toEqual([true, false]);
      const [here, there] = [shared.partOf(name), other.partOf(name)];
      expect([
        await here.setIfAbsent(name, "x", 60_000),
        await there.setIfAbsent(name, "y", 60_000),
      ]).toEqual([true, false]);
      expect(await there.get(name)).toBe("x");
    }
    other.close();
  });

  test("is unavailable for a moving slot until it has moved, and runs no partial script", async () => {
    const part = shared.partOf("ws_moves");
    const slot = slotIn(part);
    const [from, to] = slot < 16_384 / 2 ? [first, second] : [second, first];
    const ends = { from, to };
    const before = part.runId;
    const [one] = (await countPair(part)) as [number, number];
    await beginMove(slot, ends);
    await moveSome([`${part.prefix}two`], ends);
    await expect(countPair(part)).rejects.toThrow(SharedStateAwayError);
    expect(part.runId).toBeUndefined();
    const elsewhere = shared.parts.filter((each) => each !== part);
    for (const each of elsewhere) expect(each.runId).toBeDefined();
    await moveNames(slot, ends);
    await endMove(slot, ends);
    const there = await nextRun(part, before);
    // The counts move with the slot, since their keys do not contain a run.
    expect(await countPair(part)).toEqual([one + 1, one + 1]);
    await moveSlot(slot, { from: to, to: from });
    await expect(countPair(part)).rejects.toThrow(SharedStateAwayError);
    // The slot is back at the server that had it before, but the part has to start a new run: the
    // old one's keys may be out of date.
    expect([before, there]).not.toContain(await nextRun(part, there));
    expect(await countPair(part)).toEqual([one + 2, one + 2]);
  }, 240_000);

  test("has the same run id on all gateways, also after a server lost its data", async () => {
    const other = await open(cluster.url);
    const runs = (from: SharedParts) => from.parts.map(({ runId }) => runId);
    expect(runs(other)).toEqual(runs(shared));
    const [here, there] = [shared.partOf("ws_forgotten"), other.partOf("ws_forgotten")];
    const before = here.runId;
    const { client } = slotIn(here) < 16_384 / 2 ? first : second;
    await client.flushall();
    await expect(countPair(here)).rejects.toThrow(SharedStateAwayError);
    const after = await nextRun(here, before);
    await expect(countPair(there)).rejects.toThrow(SharedStateAwayError);
    expect(await nextRun(there, before)).toBe(after);
    expect([await countPair(here), await countPair(there)]).toEqual([
      [1, 1],
      [2, 2],
    ]);
    other.close();
  }, 240_000);
});

describe.skipIf(!hasRedis)(`an unsuitable cluster${redisMissing}`, () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 2 });
  }, 240_000);
  afterAll(() => cluster.stop());

  const refusal = async (
    url: string,
    sentinels: readonly string[] = [],
  ): Promise<{ name: string; message: string }> => {
    const opened = openSharedState({ url, sentinels, logger: silentLogger, waitMs: 60_000 });
    return opened.then(
      () => ({ name: "none", message: "" }),
      (error: unknown) => error as Error,
    );
  };

  test("is refused if its URL has a database", async () => {
    expect(await refusal(`${cluster.url}/2`)).toMatchObject({
      name: "SharedStateUnfitError",
      message: expect.stringContaining("has no databases: leave /2 out of its URL") as string,
    });
  }, 240_000);

  test("is refused with the name of a server that evicts keys", async () => {
    const [, evicting] = cluster.primaries;
    await evicting!.client.config("SET", "maxmemory-policy", "allkeys-lru");
    expect(await refusal(cluster.url)).toMatchObject({
      name: "SharedStateUnfitError",
      message: expect.stringContaining(`127.0.0.1:${evicting!.port} evicts keys`) as string,
    });
    await evicting!.client.config("SET", "maxmemory-policy", "noeviction");
  }, 240_000);

  test("is refused for a login without the documented rights", async () => {
    const login = (name: string): string => cluster.url.replace("//", `//${name}:secret@`);
    const rights = "~switchyard:* &switchyard:* -@all +@read +@write +@scripting +@transaction";
    const others = "+@connection +@pubsub +info +time";
    for (const { client } of cluster.primaries) {
      for (const [name, more] of [
        ["gateway", ["+cluster|slots"]],
        ["lacking", []],
      ] as const)
        await client.call(
          "ACL",
          ...["SETUSER", name, "on", ">secret", ...`${rights} ${others}`.split(" "), ...more],
        );
    }
    expect(await refusal(login("lacking"))).toMatchObject({
      name: "SharedStateUnfitError",
      message: expect.stringContaining("NOPERM") as string,
    });
    const shared = await open(login("gateway"));
    for (const part of shared.parts) expect(await countPair(part)).toEqual([1, 1]);
    shared.close();
  }, 240_000);
});

describe.skipIf(!hasRedis)(`a cluster server that stops${redisMissing}`, () => {
  test("makes only its own parts unavailable; messages arrive through another server", async () => {
    const cluster = await startRedisCluster({ primaries: 3 });
    const shared = await open(cluster.url);
    const server = { url: cluster.url, logger: silentLogger };
    const ears = await SharedChannel.open({ ...server, shared, nodeId: "listens" });
    const mouth = await SharedChannel.open({ ...server, shared, nodeId: "speaks" });
    const heard = (): Promise<string> => new Promise((resolve) => ears.on("words", resolve));
    const listening = (): Promise<void> =>
      new Promise((resolve) => void (ears.isListening ? resolve() : ears.onListening(resolve)));
    await listening();
    // Both gateways listen at the first server.
    const again = new Promise<void>((resolve) => ears.onListening(resolve));
    const hearing = heard();
    await again;
    mouth.publish("words", "before");
    expect(await hearing).toBe("before");

    const [lost] = cluster.primaries;
    const back = new Promise<void>((resolve) => ears.onListening(resolve));
    await cluster.kill(lost!);
    const isLost = (part: SharedPart): boolean => slotIn(part) < Math.floor(16_384 / 3);
    for (const part of shared.parts) {
      if (isLost(part)) await expect(countPair(part)).rejects.toThrow(SharedStateAwayError);
      else expect(await countPair(part)).toEqual([1, 1]);
    }
    await back;
    const later = heard();
    const subscribed = new Promise<void>((resolve) => ears.onListening(resolve));
    await subscribed;
    mouth.publish("words", "after");
    expect(await later).toBe("after");
    for (const channel of [ears, mouth]) channel.close();
    shared.close();
    await cluster.stop();
  }, 240_000);

  test("does not prevent a gateway from starting", async () => {
    const cluster = await startRedisCluster({ primaries: 3 });
    await cluster.kill(cluster.primaries[2]!);
    const shared = await openSharedState({
      url: cluster.url,
      logger: silentLogger,
      waitMs: 10_000,
    });
    const serving = shared.parts.filter(({ runId }) => runId !== undefined);
    expect(serving.length).toBeGreaterThan(0);
    expect(serving.length).toBeLessThan(shared.parts.length);
    shared.close();
    await cluster.stop();
  }, 240_000);
});
