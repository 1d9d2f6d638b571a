import { RateLimiter, type RequestLimits } from "../../src/access/rate-limiter.ts";
import { SharedRateLimiter } from "../../src/access/shared-rate-limiter.ts";
import type { Clock } from "../../src/platform/kernel/clock.ts";
import { SharedState } from "../../src/platform/shared-state/shared-state.ts";
import { freshRedis, hasRedis } from "./redis.ts";
import { silentLogger } from "./silent-logger.ts";

/** Creates rate windows that have not counted anything yet. */
export type NewLimits = (clock: Clock) => Promise<RequestLimits>;

/** Returns windows in their own database of the shared server, measured by this clock. */
async function sharedLimits(clock: Clock): Promise<RequestLimits> {
  const shared = await SharedState.open({
    url: await freshRedis(),
    logger: silentLogger,
    // A server that counts as away would leave requests to windows of the process's own.
    answerMs: 60_000,
  });
  return new SharedRateLimiter({
    shared,
    ownWindows: new RateLimiter(clock),
    clock,
    nowMs: () => clock.nowMs(),
  });
}

/** Every store of rate windows, by name; a machine without Valkey and Redis has memory alone. */
export const rateWindowEngines: readonly [string, NewLimits][] = [
  ["memory", async (clock) => new RateLimiter(clock)],
  ...(hasRedis ? [["Valkey", sharedLimits] satisfies [string, NewLimits]] : []),
];
