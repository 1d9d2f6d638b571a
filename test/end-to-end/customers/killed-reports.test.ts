import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { minuteMs, systemClock } from "../../../src/platform/kernel/clock.ts";
import { openMeterReporter } from "../../support/meter-reporter.ts";
import { putMigratedSqlite } from "../../support/migrated-sqlite.ts";
import { endProcesses, temporaryDirectory } from "../../support/process.ts";
import { type FakeStripe, startFakeStripe } from "../../support/stripe/fake-stripe.ts";

const script = join(import.meta.dir, "..", "..", "support", "report-until-killed.ts");

/** How far the clocks of Stripe and of the gateways are ahead, so that what was not answered is due. */
let aheadMs = 0;
let stripe: FakeStripe;
beforeAll(() => {
  stripe = startFakeStripe(() => Date.now() + aheadMs);
});
afterAll(async () => {
  await stripe.stop();
  await endProcesses();
});

/** Reports until Stripe was asked some times more, and kills the process at that very request. */
async function reportUntil(path: string, requests: number): Promise<void> {
  const child = Bun.spawn(["bun", script, path, stripe.url, String(aheadMs)], {
    stdout: "ignore",
    stderr: "inherit",
  });
  stripe.whenAsked = (count) => {
    if (count === requests) child.kill(9);
  };
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
}

test("Stripe gets each meter event once, whenever the gateway is killed", async () => {
  const url = await putMigratedSqlite(temporaryDirectory());
  const path = url.slice("sqlite:".length);
  for (const more of [1, 3, 6, 9, 12]) {
    await reportUntil(path, stripe.requests.length + more);
    aheadMs += 2 * minuteMs;
  }
  stripe.whenAsked = () => undefined;
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs };
  const reporter = await openMeterReporter({ url, apiBase: stripe.url, clock });
  for (let round = 0; round < 3; round += 1) {
    await reporter.events.run();
    aheadMs += 2 * minuteMs;
  }
  const { meters } = stripe.world;
  const span = { fromDay: 0, toDay: Number.MAX_SAFE_INTEGER };
  const externalIds = reporter.customers.map(({ externalId }) => externalId);
  const sums = await reporter.store.sums("ws_own", { externalIds, ...span });
  for (const { id, externalId, stripeCustomerId } of reporter.customers) {
    const billed = Number((sums.get(externalId)?.priceNano ?? 0n) / 1_000n);
    expect(billed).toBeGreaterThan(0);
    expect(meters.sumOf(stripeCustomerId ?? "")).toBe(billed);
    const events = await reporter.events.list(id, 1_000);
    expect(events.filter(({ endedAtMs, error }) => endedAtMs === null || error !== null)).toEqual(
      [],
    );
  }
  const identifiers = meters.events.map(({ identifier }) => identifier);
  expect(new Set(identifiers).size).toBe(identifiers.length);
  // Some were asked for again, since their answers were lost with the process.
  const reports = stripe.requests.filter(({ path: asked }) => asked === "/billing/meter_events");
  expect(reports.length).toBeGreaterThan(identifiers.length);
  await reporter.close();
}, 240_000);
