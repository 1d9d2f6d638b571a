import { loadavg } from "node:os";
import type { Peer } from "../peers/peer.ts";
import type { Children } from "../process/children.ts";
import { alignedTable } from "../report.ts";
import { killsAmong, type PeerFault } from "./faults.ts";
import { runFault, type FaultResult } from "./run-fault.ts";

/** What a comparison of books needs. */
export interface BooksRun {
  peers: readonly Peer[];
  /** Whole answers that each gateway gives at least. */
  requests: number;
  children: Children;
  /** A directory that is deleted after the run. */
  directory: string;
  report: (text: string) => void;
}

const kills = 3;

/**
 * Kills each gateway that keeps books three times among so many answers, and prints how its books
 * differ from them; false where those of this project are not exact.
 */
export async function runBooks(run: BooksRun): Promise<boolean> {
  const answers = Math.ceil(run.requests / (kills + 2));
  const { results, lines } = await runFaults(run, [killsAmong(kills, answers)], answers);
  run.report(
    alignedTable([
      ["gateway", "", "answered", "5xx", "broken", "rows", "lost", "double", "not seen whole"],
      ...results.map((result) => [
        ...[result.peer, result.fault],
        ...[result.answered, result.failed, result.broken].map(String),
        ...[result.rows, result.lost, result.double, result.unseen].map(String),
      ]),
    ]),
  );
  for (const line of lines) run.report(line);
  run.report(`load ${loadText()}`);
  return results.every(isExact);
}

/** Whether the books of a gateway of this project hold every answer once; true for all others. */
export const isExact = ({ peer, lost, double }: FaultResult): boolean =>
  !peer.startsWith("gateway") || (lost === 0 && double === 0);

/** Averages of 1, 5 and 15 minutes. */
const loadText = (): string =>
  loadavg()
    .map((load) => load.toFixed(1))
    .join(" ");

/** Every gateway with books under every fault; a line for each one that could not be broken. */
export async function runFaults(
  { peers, children, directory, report }: Omit<BooksRun, "requests">,
  faults: readonly PeerFault[],
  answersAround: number,
): Promise<{ results: FaultResult[]; lines: string[] }> {
  const results: FaultResult[] = [];
  const lines: string[] = [];
  for (const peer of peers.filter(({ books }) => books !== undefined)) {
    const prepared = await peer.prepare();
    if (!prepared.ready) {
      lines.push(`${peer.name}: skipped, ${prepared.reason}`);
      continue;
    }
    report(`${peer.name}: ${prepared.version}; ${peer.work.record}`);
    for (const fault of faults) {
      const run = { peer, fault, answersAround, children, directory };
      const result = await runFault(run).catch(String);
      if (typeof result === "string") lines.push(`${peer.name}, ${fault.name}: ${result}`);
      else results.push(result);
    }
  }
  return { results, lines };
}
