import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { freshRedis, hasRedis, redisMissing } from "../../../test/support/redis.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { SharedState } from "./shared-state.ts";
import { SharedValues } from "./shared-values.ts";

describe.skipIf(!hasRedis)(`values that gateways share (on Valkey)${redisMissing}`, () => {
  const opened: SharedState[] = [];
  let shared: SharedState;
  beforeEach(async () => {
    shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    opened.push(shared);
  });
  afterAll(() => opened.forEach((each) => each.close()));

  const valuesOf = (bytesMax = 1_000_000) =>
    new SharedValues<{ tail: string }>({ shared, name: "test", bytesMax });

  test("what one keeps the other finds, and nobody what was not kept", async () => {
    await valuesOf().set("k", { tail: "ü" }, 60);
    expect([await valuesOf().get("k"), await valuesOf().get("other")]).toEqual([
      { tail: "ü" },
      undefined,
    ]);
  });

  test("never more than the bound: what ends soonest goes first, and one that is replaced counts once", async () => {
    const values = valuesOf(40_000);
    for (const [index, name] of ["a", "b", "c", "d"].entries())
      await values.set(name, { tail: "x".repeat(9_000) }, 100 - index);
    for (let time = 0; time < 20; time += 1)
      await values.set("a", { tail: "y".repeat(9_000) }, 200);
    expect(await values.get("d")).toBeDefined();
    await values.set("e", { tail: "x".repeat(9_000) }, 300);
    const kept = await Promise.all(
      ["a", "b", "c", "d", "e"].map(async (name) => (await values.get(name)) !== undefined),
    );
    expect(kept).toEqual([true, true, true, false, true]);
  });

  test("one that would take a quarter of the room is not kept", async () => {
    await valuesOf(40_000).set("big", { tail: "x".repeat(10_000) }, 60);
    expect(await valuesOf(40_000).get("big")).toBeUndefined();
  });
});
