import { RateLimiter, type RequestLimits } from "../../src/access/rate-limiter.ts";
import { SharedRateLimiter } from "../../src/access/shared-rate-limiter.ts";
import type { Clock } from "../../src/platform/kernel/clock.ts";
import { SharedState } from "../../src/platform/shared-state/shared-state.ts";
import { freshRedis, hasRedis } from "./redis.ts";
import { silentLogger } from "./silent-logger.ts";

/** What makes rate windows that count nothing yet. */
export type NewLimits = (clock: Clock) => Promise<RequestLimits>;

/** Windows on a database of their own of the shared server, by the clock that they are given. */
async function sharedLimits(clock: Clock): Promise<RequestLimits> {
  const shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
  return new SharedRateLimiter({
    shared,
    ownWindows: new RateLimiter(clock),
    nowMs: () => clock.nowMs(),
  });
}

/**
 * Every place that rate windows can live in, by name; a machine without Valkey and Redis has memory
 * alone.
 */
export const rateWindowEngines: readonly [string, NewLimits][] = [
  ["memory", async (clock) => new RateLimiter(clock)],
  ...(hasRedis ? [["Valkey", sharedLimits] satisfies [string, NewLimits]] : []),
];
