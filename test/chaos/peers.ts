import { join } from "node:path";
import { peerFaults } from "../../bench/books/faults.ts";
import { isExact, runFaults } from "../../bench/books/run-books.ts";
import type { FaultResult } from "../../bench/books/run-fault.ts";
import { gateway } from "../../bench/peers/gateway.ts";
import { gomodel } from "../../bench/peers/gomodel.ts";
import { litellm } from "../../bench/peers/litellm.ts";
import { Children, stopOnSignals } from "../../bench/process/children.ts";
import { temporaryDirectory } from "../support/process.ts";

/** Whole answers before each fault, and after it. */
const answersAround = 300;

const columns: readonly [string, (result: FaultResult) => unknown][] = [
  ["answered", ({ answered }) => answered],
  ["5xx", ({ failed }) => failed],
  ["broken", ({ broken }) => broken],
  ["s to normal", ({ secondsToNormal }) => secondsToNormal],
  ["rows", ({ rows }) => rows],
  ["lost", ({ lost }) => lost],
  ["double", ({ double }) => double],
];

/**
 * Breaks this gateway, GoModel and LiteLLM in the same ways, each with SQLite or what it writes to
 * without a server, and prints what clients and books came to. Words choose faults or gateways by
 * parts of their names; the result names the faults after which the books of this one are not exact.
 */
export async function runPeers(words: readonly string[]): Promise<string[]> {
  const directory = temporaryDirectory();
  const children = new Children(directory);
  stopOnSignals(children);
  const all = [gateway("power"), gomodel, litellm({ mayInstall: true })];
  const isNamed = (name: string): boolean => words.some((word) => name.includes(word));
  const peers = all.filter(({ name }) => isNamed(name));
  const faults = peerFaults.filter(({ name }) => isNamed(name));
  const { results, lines } = await runFaults(
    {
      peers: peers.length === 0 ? all : peers,
      children,
      directory: join(directory, "peers"),
      report: (text) => console.log(text),
    },
    faults.length === 0 ? peerFaults : faults,
    answersAround,
  ).finally(() => children.stopAll());
  console.log(`\n| fault | gateway | ${columns.map(([title]) => title).join(" | ")} |`);
  console.log(`|---|---|${columns.map(() => "---:").join("|")}|`);
  for (const { name } of peerFaults) {
    for (const result of results.filter(({ fault }) => fault === name)) {
      const cells = columns.map(([, cell]) => cell(result));
      console.log(`| ${name} | ${result.peer} | ${cells.join(" | ")} |`);
    }
  }
  for (const line of lines) console.log(line);
  return results.filter((result) => !isExact(result)).map(({ fault, peer }) => `${peer}: ${fault}`);
}
