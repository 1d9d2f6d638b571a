import { beforeAll, describe, expect, test } from "bun:test";
import { retryBudgetLimits as budget } from "../../src/inference/routing/health/retry-budget.ts";
import { healthThresholds } from "../../src/insights/health/thresholds.ts";
import { isNightly } from "../support/nightly.ts";
import { seeded } from "../support/seeded.ts";
import { drawFaults, type Fault } from "./faults.ts";
import { providers, runSimulation, triesOf, type Seen, type Try } from "./run-simulation.ts";

const secondMs = 1_000;
const minuteMs = 60 * secondMs;

/**
 * A provider is back when its longest quarantine and its probation are over (docs/health.md); one
 * that was only asked last is back sooner, since what failed is forgotten within three minutes.
 */
const recoveryMs = healthThresholds.quarantineMaxMs + healthThresholds.probationMs;
/**
 * How far the failed fallbacks to a provider were ever beyond what its answers and the passing time
 * gave back (docs/health.md). Those that were under way when its budget ran out count on top, since
 * how they end was not known yet.
 */
function mostFailedFallbacks(tries: readonly Try[]): { failed: number; underWay: number } {
  const ended = tries.toSorted((left, right) => left.untilMs - right.untilMs);
  let [failed, most, atMs] = [0, 0, 0];
  for (const { untilMs, served, fallback } of ended) {
    failed = Math.max(0, failed - ((untilMs - atMs) / secondMs) * budget.perSecond);
    atMs = untilMs;
    failed = served ? Math.max(0, failed - 1) : failed + Number(fallback);
    most = Math.max(most, failed);
  }
  const fallbacks = tries.filter(({ fallback }) => fallback);
  const underWay = Math.max(
    0,
    ...fallbacks.map(
      ({ fromMs }) =>
        fallbacks.filter((other) => other.fromMs <= fromMs && fromMs < other.untilMs).length,
    ),
  );
  return { failed: most, underWay };
}

const anyProvider = (random: () => number): string =>
  providers[Math.floor(random() * providers.length)] ?? "";
const availability = ({ asked }: Seen): number =>
  asked.filter(({ ok }) => ok).length / asked.length;
const within =
  ({ fromMs, untilMs }: Pick<Fault, "fromMs" | "untilMs">) =>
  (entry: Try): boolean =>
    fromMs <= entry.fromMs && entry.untilMs < untilMs;

/** How long one or two providers always have faults: by day half as long as nightly. */
const minutes = isNightly ? 120 : 60;
/** How many faults are drawn at least, each of which leaves its provider half of its answers. */
const faultsMin = isNightly ? 40 : 17;

describe(`${minutes} minutes with ten providers, one or two of which always have faults`, () => {
  const random = seeded(4);
  const lengthMs = minutes * minuteMs;
  const faults = drawFaults(providers, { random, lengthMs });
  let seen: Seen;
  let tries: Try[];

  beforeAll(async () => {
    seen = await runSimulation({
      lengthMs,
      faults,
      random,
      requestsPerSecond: 4,
      // Most leave the choice to the gateway; some sort, and some name two providers that they want
      // first.
      wishOf() {
        const draw = random();
        if (draw < 0.7) return {};
        return {
          provider:
            draw < 0.85 ? { sort: "price" } : { order: [anyProvider(random), anyProvider(random)] },
        };
      },
    });
    tries = triesOf(seen.asked);
  }, 240_000);

  test("callers see more than 99.9 % availability while providers fall to half and below", () => {
    expect(seen.asked.length).toBeGreaterThan(208 * minutes);
    expect(availability(seen)).toBeGreaterThan(0.999);
    const shares = faults.map((fault) => {
      const own = tries.filter(({ provider }) => provider === fault.provider).filter(within(fault));
      return own.filter(({ served }) => served).length / own.length;
    });
    expect(faults.length).toBeGreaterThan(faultsMin);
    expect(shares.filter((share) => share <= 0.6).length).toBeGreaterThan(faultsMin);
  });

  test("no provider gets more fallbacks than its budget, and requests hardly multiply", () => {
    for (const id of providers) {
      const { failed, underWay } = mostFailedFallbacks(
        tries.filter(({ provider }) => provider === id),
      );
      expect(failed).toBeLessThanOrEqual(budget.atOnce + underWay);
    }
    expect(tries.length / seen.asked.length).toBeLessThan(1.1);
  });

  test("a recovered provider is healthy and tried first again within its window", () => {
    const undisturbed = faults.filter(
      ({ provider, untilMs }) =>
        !faults.some(
          (other) =>
            other.provider === provider &&
            other.fromMs > untilMs &&
            other.fromMs < untilMs + recoveryMs + minuteMs,
        ),
    );
    expect(undisturbed.length).toBeGreaterThan(minutes / 4);
    for (const { provider: id, untilMs } of undisturbed) {
      const isHealthy = seen.states.some(
        ({ provider, atMs, state }) =>
          provider === id && state === undefined && untilMs <= atMs && atMs <= untilMs + recoveryMs,
      );
      const isFirst = tries.some(
        ({ provider, fromMs, served, fallback }) =>
          provider === id &&
          served &&
          !fallback &&
          untilMs <= fromMs &&
          fromMs <= untilMs + recoveryMs + minuteMs,
      );
      expect({ id, untilMs, isHealthy, isFirst }).toEqual({
        id,
        untilMs,
        isHealthy: true,
        isFirst: true,
      });
    }
  });

  test("outages and recoveries are reported as events, and every provider ends healthy", () => {
    expect(seen.events).toHaveLength(50);
    const last = new Map(seen.events.toReversed().map(({ upstream_id: id, to }) => [id, to]));
    expect([...last.values()].every((status) => status === "healthy")).toBe(true);
    expect(seen.events.map(({ to }) => to)).toContain("down");
    expect(seen.states.map(({ state }) => state)).toContain("deprioritized");
  });
});

describe("nine of ten providers unreachable for 90 seconds, while callers prefer the cheapest", () => {
  const fault = {
    name: "it cannot be reached",
    fromMs: 10 * secondMs,
    untilMs: 100 * secondMs,
  } as const;
  const faults = providers.slice(0, -1).map((provider) => ({ ...fault, provider }));
  const requestsPerSecond = 100;
  let seen: Seen;
  let tries: Try[];

  beforeAll(async () => {
    seen = await runSimulation({
      lengthMs: 110 * secondMs,
      faults,
      random: seeded(9),
      requestsPerSecond,
      wishOf: () => ({ provider: { sort: "price" } }),
    });
    tries = triesOf(seen.asked).filter((entry) => within(fault)(entry));
  }, 240_000);

  test("every caller is answered by the tenth", () => expect(availability(seen)).toBe(1));

  test("each of the nine gets only its budget of fallbacks before it is quarantined", () => {
    const seconds = (2 * healthThresholds.quarantineRowMs) / secondMs;
    for (const id of providers.slice(1, -1)) {
      const fallbacks = tries.filter(({ provider, fallback }) => provider === id && fallback);
      expect(fallbacks.length).toBeGreaterThan(budget.atOnce);
      expect(fallbacks.length).toBeLessThan(budget.atOnce + seconds * budget.perSecond);
      const { failed, underWay } = mostFailedFallbacks(fallbacks);
      expect(failed).toBeLessThanOrEqual(budget.atOnce + underWay);
    }
  });

  test("the cheapest is tried first only until it is quarantined", () => {
    const firsts = tries.filter(({ provider, fallback }) => provider === "p0" && !fallback);
    expect(firsts.length).toBeLessThan(
      (requestsPerSecond * 2 * healthThresholds.quarantineRowMs) / secondMs,
    );
  });
});
