import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { freshRedis, hasRedis, redisMissing } from "../../../test/support/redis.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { SharedState } from "./shared-state.ts";
import { SharedValues } from "./shared-values.ts";

describe.skipIf(!hasRedis)(`values shared by gateways (on Valkey)${redisMissing}`, () => {
  const opened: SharedState[] = [];
  let shared: SharedState;
  beforeEach(async () => {
    shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    opened.push(shared);
  });
  afterAll(() => opened.forEach((each) => each.close()));

  const valuesOf = (bytesMax = 1_000_000) =>
    new SharedValues<{ tail: string }>({ shared, name: "test", bytesMax });

  test("are visible to other gateways", async () => {
    await valuesOf().set("k", { tail: "ü" }, 60);
    expect([await valuesOf().get("k"), await valuesOf().get("other")]).toEqual([
      { tail: "ü" },
      undefined,
    ]);
  });

  test("stay within their size limit: the earliest to expire is removed, and a replaced one counts once", async () => {
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

  test("are not stored if they take a quarter of the limit", async () => {
    await valuesOf(40_000).set("big", { tail: "x".repeat(10_000) }, 60);
    expect(await valuesOf(40_000).get("big")).toBeUndefined();
  });
});
