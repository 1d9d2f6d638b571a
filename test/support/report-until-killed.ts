/**
 * Uses something and reports it to a meter forever, and prints a line for each round. Arguments: the
 * database file, the address of a simulated Stripe, and the milliseconds that its clock is ahead.
 */
import { writeSync } from "node:fs";
import { systemClock } from "../../src/platform/kernel/clock.ts";
import { openMeterReporter } from "./meter-reporter.ts";

const [path, apiBase = "", aheadMs] = process.argv.slice(2);
const clock = { ...systemClock, nowMs: () => Date.now() + Number(aheadMs) };
const { events, use } = await openMeterReporter({ url: `sqlite:${path}`, apiBase, clock });
for (let round = 1; ; round += 1) {
  await use(round * 1_700);
  await events.run();
  writeSync(1, "round\n");
}
