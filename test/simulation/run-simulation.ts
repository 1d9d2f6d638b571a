import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RoutingState } from "../../src/insights/health/provider-health.ts";
import type { HealthSnapshot } from "../../src/insights/health/health-monitor.ts";
import { openInsightStorage } from "../support/generation-records.ts";
import { faults, healthy, type Fault } from "./faults.ts";
import { simulateGateway, type Outcome } from "./simulated-gateway.ts";
import { VirtualTime } from "./virtual-time.ts";
import { withTables } from "../../src/platform/storage/with-tables.ts";

/** Ten providers of one model, the cheapest first. */
export const providers: readonly string[] = Array.from({ length: 10 }, (_, index) => `p${index}`);

/** How often the gateway looks after its providers, as `openInsights` has it. */
const checkEveryMs = 10_000;

/** What callers do and what happens to providers. */
export interface Scenario {
  lengthMs: number;
  requestsPerSecond: number;
  faults: readonly Fault[];
  random: () => number;
  /** What a request says beside its model, drawn again for each. */
  wishOf(): Record<string, unknown>;
}

/** One request, and when it came. */
export type AskedAt = Outcome & { startMs: number };

/** What was seen of a simulation. */
export interface Seen {
  asked: AskedAt[];
  /** The state of each provider every ten seconds; undefined for a healthy one. */
  states: { atMs: number; provider: string; state: RoutingState | undefined }[];
  events: HealthSnapshot["events"];
}

/**
 * Plays a scenario to its end; requests come at random, as many a second as it says on the average.
 */
export async function runSimulation({
  lengthMs,
  requestsPerSecond,
  faults: planned,
  random,
  wishOf,
}: Scenario): Promise<Seen> {
  const time = new VirtualTime();
  const root = mkdtempSync(join(tmpdir(), "switchyard-simulation-"));
  const storage = await openInsightStorage(`sqlite:${join(root, "events.db")}`);
  const faultNow = (id: string): Fault | undefined =>
    planned.find(
      ({ provider, fromMs, untilMs }) =>
        provider === id && fromMs <= time.nowMs && time.nowMs < untilMs,
    );
  const { insights, ask } = await simulateGateway(providers, {
    time,
    random,
    database: withTables(storage.database),
    behaviourOf(id) {
      const fault = faultNow(id);
      return (fault === undefined ? healthy : faults[fault.name])(random);
    },
  });
  const seen: Seen = { asked: [], states: [], events: [] };
  const askOnce = (): void => {
    const startMs = time.nowMs;
    void ask({
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
      ...wishOf(),
    }).then((outcome) => void seen.asked.push({ ...outcome, startMs }));
    const waitMs = (-Math.log(1 - random()) * 1_000) / requestsPerSecond;
    if (startMs + waitMs < lengthMs) time.after(waitMs, askOnce);
  };
  const check = (): void => {
    void insights.health.check();
    for (const provider of providers)
      seen.states.push({ atMs: time.nowMs, provider, state: insights.stateOf(provider) });
    if (time.nowMs < lengthMs) time.after(checkEveryMs, check);
  };
  time.after(0, askOnce);
  time.after(checkEveryMs, check);
  await time.run();
  await insights.health.idle();
  seen.events = insights.health.snapshot().events;
  await storage.close();
  rmSync(root, { recursive: true, force: true });
  return seen;
}

/** One try at a provider, and when it began and ended. */
export interface Try {
  provider: string;
  fromMs: number;
  untilMs: number;
  served: boolean;
  /** Another provider's failure was before it. */
  fallback: boolean;
}

/** Every try of every request. */
export const triesOf = (asked: readonly AskedAt[]): Try[] =>
  asked.flatMap(({ startMs, attempts }) => {
    let fromMs = startMs;
    return attempts.map(({ provider, outcome, durationMs }, index): Try => {
      const untilMs = fromMs + durationMs;
      const entry = {
        provider,
        fromMs,
        untilMs,
        served: outcome === "served",
        fallback: index > 0,
      };
      fromMs = untilMs;
      return entry;
    });
  });
