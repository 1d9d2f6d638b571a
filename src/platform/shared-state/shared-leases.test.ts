import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { freshRedis, hasRedis, redisMissing } from "../../../test/support/redis.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { leaseMs, SharedLeases } from "./shared-leases.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import { type SharedPart, SharedState } from "./shared-state.ts";

describe.skipIf(!hasRedis)(`leases of two gateways (on Valkey)${redisMissing}`, () => {
  let shared: SharedState;
  beforeAll(async () => {
    shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
  });
  afterAll(() => shared.close());

  const leasesOf = (
    nodeId: string,
    clock = new FakeClock(),
    server: Pick<SharedPart, "run"> = shared,
  ): SharedLeases =>
    new SharedLeases({
      shared: { partOf: () => server },
      nodeId,
      clock,
      onError: (error) => {
        throw error;
      },
    });

  test("are exclusive until they are released, and can be taken again by their holder", async () => {
    const [one, other] = [leasesOf("one"), leasesOf("other")];
    expect([
      await one.take("a"),
      await other.take("a"),
      await one.take("a"),
      await other.take("b"),
    ]).toEqual([true, false, true, true]);
    expect([one.holds("a"), other.holds("a"), other.holds("b")]).toEqual([true, false, true]);
    one.release("a");
    expect([one.holds("a"), await other.take("a")]).toEqual([false, true]);
  });

  test("give one gateway the lead, and the other gateway after the first has stopped", async () => {
    const [one, other] = [leasesOf("first"), leasesOf("second")];
    await one.renew();
    await other.renew();
    expect([one.isLeading, other.isLeading]).toEqual([true, false]);
    one.stop();
    await other.renew();
    expect([one.isLeading, other.isLeading]).toEqual([false, true]);
  });

  test("stay released if released during a renewal", async () => {
    const [one, other] = [leasesOf("renewing"), leasesOf("waiting")];
    await one.take("c");
    const renewed = one.renew();
    one.release("c");
    await renewed;
    expect([one.holds("c"), await other.take("c")]).toEqual([false, true]);
    one.stop();
    other.stop();
  });

  test("end for a gateway that cannot reach the server when they may be taken by others", async () => {
    const clock = new FakeClock();
    let isAway = false;
    const server: Pick<SharedPart, "run"> = {
      run: (...call) =>
        isAway ? Promise.reject(new SharedStateAwayError("away")) : shared.run(...call),
    };
    const leases = leasesOf("cut off", clock, server);
    expect(await leases.take("c")).toBe(true);
    isAway = true;
    clock.advance(leaseMs - 1);
    await leases.renew();
    expect(leases.holds("c")).toBe(true);
    clock.advance(1);
    expect(leases.holds("c")).toBe(false);
    await expect(leases.take("c")).rejects.toThrow("away");
  });
});
