import { cpus, loadavg } from "node:os";
import { endProcesses } from "../support/process.ts";
import { topologies, type Topology } from "./parts.ts";
import { runPeers } from "./peers.ts";
import { runScenario, type ChaosResult } from "./run-scenario.ts";
import { scenarios, type Scenario } from "./scenarios.ts";

/**
 * `npm run chaos`: every failure mode on an embedded gateway, on one with Postgres and Valkey, and
 * on three; `-- --quick` those of the tests, `-- --peers` those of one process, on other gateways
 * too. Further words choose scenarios by parts of their names.
 */
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const isQuick = process.argv.includes("--quick");

const columns: readonly [string, (result: ChaosResult) => unknown][] = [
  ["served", ({ served }) => served],
  ["5xx", ({ failed }) => failed],
  ["broken", ({ broken }) => broken],
  ["s to normal", ({ secondsToNormal }) => secondsToNormal],
  ["lost", ({ lost }) => lost],
  ["double", ({ double }) => double],
  ["free", ({ free }) => free],
  ["unpaid", ({ unpaid }) => unpaid],
  ["uncollected", ({ uncollected }) => uncollected],
  ["stuck holds", ({ stuckHolds }) => stuckHolds],
  [
    "p99 before, during",
    ({ p99BeforeMs, p99DuringMs }) => `${p99BeforeMs}, ${p99DuringMs ?? "none served"}`,
  ],
];

/** Whether the books differ from what clients were shown. */
const isInexact = ({ lost, double, free, stuckHolds }: ChaosResult, { setsBack }: Scenario) =>
  (lost > 0 && setsBack !== true) || double > 0 || free > 0 || stuckHolds > 0;

const isAsked = ({ name, quick }: Scenario): boolean =>
  (!isQuick || quick === true) && (words.length === 0 || words.some((word) => name.includes(word)));

async function runAll(topology: Topology): Promise<string[]> {
  const inexact: string[] = [];
  console.log(`\n## ${topology}\n`);
  console.log(`| fault | ${columns.map(([title]) => title).join(" | ")} |`);
  console.log(`|---|${columns.map(() => "---:").join("|")}|`);
  for (const scenario of scenarios) {
    if (!isAsked(scenario) || !scenario.on.includes(topology)) continue;
    const result = await runScenario(scenario, topology).catch(String);
    if (typeof result === "string") {
      console.log(`| ${scenario.name} | ${result.replaceAll(/\s+/g, " ")} |`);
      inexact.push(`${topology}: ${scenario.name}`);
      continue;
    }
    const cells = columns.map(([, cell]) => cell(result));
    console.log(`| ${result.name} | ${cells.join(" | ")} |`);
    if (isInexact(result, scenario)) inexact.push(`${topology}: ${result.name}`);
  }
  return inexact;
}

const state = (): string =>
  `${cpus().length} cores, load ${loadavg()
    .map((load) => load.toFixed(1))
    .join(" ")}`;

console.log(`begun with ${state()}`);
const inexact: string[] = [];
if (process.argv.includes("--peers")) inexact.push(...(await runPeers(words)));
else for (const topology of topologies) inexact.push(...(await runAll(topology)));
console.log(`\nended with ${state()}`);
await endProcesses();
for (const name of inexact) console.error(`the books are not exact after: ${name}`);
process.exit(inexact.length === 0 ? 0 : 1);
