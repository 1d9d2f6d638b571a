import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { until } from "../../test/end-to-end/nodes/support/until.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { freshRedis, hasRedis } from "../../test/support/redis.ts";
import { silentLogger } from "../../test/support/silent-logger.ts";
import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import { SharedChannel } from "../platform/shared-state/shared-channel.ts";
import { SharedState } from "../platform/shared-state/shared-state.ts";
import {
  ProviderKeyUsage,
  heldMs,
  type KeyUse,
  type SharedKeyUsageOptions,
} from "./provider-key-usage.ts";
import { SharedKeyUsage } from "./shared-key-usage.ts";
import type { ProviderKey } from "./provider-key.ts";

type Channel = SharedKeyUsageOptions["channel"];

/** Words between gateways of this process, as the server passes them on. */
function inMemory(): () => Channel {
  const listeners: { of: symbol; channel: string; receive(message: string): void }[] = [];
  return () => {
    const of = Symbol("gateway");
    return {
      on: (channel, receive) => void listeners.push({ of, channel, receive }),
      publish: (channel, message) => {
        for (const each of listeners)
          if (each.of !== of && each.channel === channel) each.receive(message);
      },
      onListening: () => undefined,
    };
  };
}

const closers: (() => void)[] = [];
afterAll(() => closers.forEach((close) => close()));

async function onValkey(): Promise<() => Promise<Channel>> {
  const url = await freshRedis();
  return async () => {
    const shared = await SharedState.open({ url, logger: silentLogger });
    const channel = await SharedChannel.open({
      url,
      shared,
      nodeId: crypto.randomUUID(),
      logger: silentLogger,
    });
    closers.push(
      () => channel.close(),
      () => shared.close(),
    );
    return channel;
  };
}

const keyWith = (fields: Partial<ProviderKey>): ProviderKey =>
  ({ id: "byok_1", quota: null, donation: null, ...fields }) as ProviderKey;
const quota = { limitNano: 10n, reset: "daily" } as const;
const own = (key = keyWith({ quota })): KeyUse => ({ key, source: "own_byok" });
const pooled: KeyUse = {
  key: keyWith({ donation: { donatedAtMs: 0, dailyLimitNano: 10n, paused: null } }),
  source: "pool",
};

/** Lets what has arrived be heard. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

type Engine = [name: string, open: () => Promise<() => Promise<Channel> | Channel>];
const memory: Engine = ["memory", async () => inMemory()];
const engines: Engine[] = hasRedis ? [memory, ["Valkey", onValkey]] : [memory];

describe.each(engines)("quotas of provider keys over two gateways (on %s)", (_, open) => {
  const clock = new FakeClock();
  let [here, there]: [ProviderKeyUsage, ProviderKeyUsage] = [
    new ProviderKeyUsage(clock),
    new ProviderKeyUsage(clock),
  ];
  let shares: SharedKeyUsage[] = [];
  /** What the database would have of the key. */
  let stored = 0n;
  beforeEach(async () => {
    stored = 0n;
    [here, there] = [new ProviderKeyUsage(clock), new ProviderKeyUsage(clock)];
    const connect = await open();
    shares = await Promise.all(
      [here, there].map(async (usage, index) => {
        const shared = new SharedKeyUsage({
          usage,
          clock,
          channel: await connect(),
          nodeId: `node${index}`,
          async reload(of) {
            of.forgetUsed();
            of.restore("byok_1", {
              hour: Math.floor(clock.nowMs() / 3_600_000),
              spendNano: stored,
              poolNano: 0n,
            });
          },
          onError: (error) => {
            throw error;
          },
        });
        shared.start();
        closers.push(() => shared.stop());
        return shared;
      }),
    );
    // Both hear before anything is said.
    const isHeard = async (): Promise<boolean> => {
      shares[0]?.held("probe", { totalNano: 1n, poolNano: 1n });
      shares[1]?.held("probe", { totalNano: 1n, poolNano: 1n });
      await turn();
      return shares.every((each) => each.heldOf("probe").totalNano === 1n);
    };
    await until(isHeard, { patienceMs: 20_000, what: "both hear" });
  });
  const untilLeft = (usage: ProviderKeyUsage, use: KeyUse, left: bigint): Promise<void> =>
    until(
      async () => {
        await turn();
        return usage.leftFor(use) === left;
      },
      { patienceMs: 20_000, what: `${left} is left` },
    );

  test("share held and used amounts, and regain the amounts that were released", async () => {
    expect(here.take("r1", own(), 6n)).toBe(true);
    await untilLeft(there, own(), 4n);
    expect(there.take("r2", own(), 6n)).toBe(true);
    await untilLeft(here, own(), 0n);
    expect(here.take("r3", own(), 1n)).toBe(false);
    here.release("r1");
    await untilLeft(there, own(), 6n);
    there.settle("r2", own(), 3n);
    await untilLeft(here, own(), 7n);
    expect([here.usedOf(own().key), there.usedOf(own().key)]).toEqual([3n, 3n]);
    clock.advance(2 * dayMs);
    expect([here.leftFor(own()), there.leftFor(own())]).toEqual([10n, 10n]);
  });

  test("regain the amount of a refused commit on every gateway; a donated key has one daily limit", async () => {
    const settled = here.settle("r1", pooled, 8n);
    await untilLeft(there, pooled, 2n);
    settled.undo();
    await untilLeft(there, pooled, 10n);
    expect(here.take("r2", pooled, 10n)).toBe(true);
    await untilLeft(there, pooled, 0n);
    expect(there.take("r3", pooled, 1n)).toBe(false);
  });

  test("regain what a dead gateway held after a while; a live gateway renews its holds", async () => {
    here.take("r1", own(), 6n);
    await untilLeft(there, own(), 4n);
    clock.advance(heldMs - 1);
    shares[0]?.announceHeld();
    there.take("mark", own(keyWith({ id: "byok_2", quota })), 1n);
    await untilLeft(here, own(keyWith({ id: "byok_2", quota })), 9n);
    clock.advance(1);
    await untilLeft(there, own(), 4n);
    clock.advance(heldMs);
    expect(there.leftFor(own())).toBe(10n);
  });

  test("read the stored usage after a lost connection, and keep their own holds", async () => {
    there.take("r1", own(), 2n);
    stored = 5n;
    await shares[1]?.readAgain();
    expect(there.leftFor(own())).toBe(3n);
    await shares[1]?.readAgain();
    expect([there.usedOf(own().key), there.leftFor(own())]).toEqual([5n, 3n]);
  });
});

test("the stored usage is read again where the connection is lost during a read", async () => {
  const clock = new FakeClock();
  const usage = new ProviderKeyUsage(clock);
  let stored = 1n;
  const { promise: slowRead, resolve: endSlowRead } = Promise.withResolvers<void>();
  const shared = new SharedKeyUsage({
    usage,
    clock,
    channel: inMemory()(),
    nodeId: "node",
    async reload(of) {
      const spendNano = stored;
      await slowRead;
      of.forgetUsed();
      of.restore("byok_1", { hour: Math.floor(clock.nowMs() / hourMs), spendNano, poolNano: 0n });
    },
    onError: (error) => {
      throw error;
    },
  });
  const reading = shared.readAgain();
  // Another gateway spends while this one does not listen.
  stored = 5n;
  await shared.readAgain();
  endSlowRead();
  await reading;
  expect(usage.usedOf(own().key)).toBe(5n);
});
