import { describe, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { freshRedis, hasRedis, redisMissing } from "../../test/support/redis.ts";
import { silentLogger } from "../../test/support/silent-logger.ts";
import { SharedState } from "../platform/shared-state/shared-state.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { SharedRateLimiter } from "./shared-rate-limiter.ts";

describe.skipIf(!hasRedis)(`windows on Valkey${redisMissing}`, () => {
  test("expire from their first request on", async () => {
    const url = await freshRedis();
    const clock = new FakeClock();
    const shared = await SharedState.open({ url, logger: silentLogger });
    const client = new Redis(url);
    const windows = new SharedRateLimiter({
      shared,
      ownWindows: new RateLimiter(clock),
      clock,
      nowMs: () => clock.nowMs(),
    });
    const tier = { id: "test", perMinute: 10 };
    await windows.count({ minutes: [{ counter: "key", tier }], hours: undefined });
    const names = await client.keys("*requests:*");
    expect(names).toHaveLength(1);
    expect(await client.pttl(names[0] ?? "")).toBeGreaterThan(59_000);
    client.disconnect();
    shared.close();
  });
});
