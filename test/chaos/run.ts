import { endProcesses } from "../support/process.ts";
import { runScenario, type ChaosResult } from "./run-scenario.ts";
import { scenarios } from "./scenarios.ts";

/**
 * `npm run chaos`: every failure mode on two gateways, one Postgres and one Valkey; `-- --quick`
 * those of the tests.
 */
const isQuick = process.argv.includes("--quick");
const columns = [
  "asked",
  "served",
  "failed",
  "broken",
  "secondsToNormal",
  "lost",
  "double",
  "free",
  "uncollected",
  "stuckHolds",
] as const;
const names = [
  "asked",
  "served",
  "5xx",
  "broken",
  "s to normal",
  "lost",
  "double",
  "free",
  "uncollected",
  "stuck holds",
];

console.log(`| fault | ${names.join(" | ")} |\n|---|${columns.map(() => "---:").join("|")}|`);
const bad: ChaosResult[] = [];
for (const scenario of scenarios.filter(({ quick }) => !isQuick || quick === true)) {
  const result = await runScenario(scenario);
  console.log(`| ${result.name} | ${columns.map((column) => result[column]).join(" | ")} |`);
  const isLost = result.lost > 0 && scenario.setsBack !== true;
  if (isLost || result.double > 0 || result.free > 0 || result.stuckHolds > 0) bad.push(result);
}
await endProcesses();
for (const { name } of bad) console.error(`the books are not exact after: ${name}`);
process.exit(bad.length === 0 ? 0 : 1);
