import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LoadResult } from "./load/job.ts";
import { startLoadGenerator, type LoadGenerator } from "./load/load-generator.ts";
import { measureStreams, type StreamsMemory } from "./measure-streams.ts";
import type { Peer, PeerContext, RunningPeer } from "./peers/peer.ts";
import { waitForLine, type Child, type Children } from "./process/children.ts";
import type { Cores } from "./process/cores.ts";
import { memoryOf, processTree } from "./process/proc-stat.ts";
import {
  figuresOf,
  medianFigures,
  type Figures,
  type PeerResults,
  type ScenarioFailure,
} from "./results.ts";
import { warmups, type Plan, type Scenario } from "./scenarios.ts";
import { verifyPeer } from "./verify-peer.ts";
import { wrkRequestsPerSecond } from "./wrk.ts";

/** What a run needs. */
export interface Bench {
  plan: Plan;
  peers: readonly Peer[];
  children: Children;
  cores: Cores;
  /** A directory that is deleted after the run. */
  directory: string;
  /** Says what is being done. */
  report: (text: string) => void;
}

/** A peer in the run, with what is known of it so far. */
interface Entry {
  peer: Peer;
  results: PeerResults;
  running: RunningPeer | undefined;
  rounds: Map<string, Figures[]>;
}

interface Stage extends Bench {
  load: LoadGenerator;
  mock: { port: number; child: Child };
  startedAtMs: number;
}

const wrkConnections = 10;

/**
 * Starts everything, measures every peer in every scenario in turns, and gives the medians of the
 * rounds.
 */
export async function runBenchmark(bench: Bench): Promise<PeerResults[]> {
  const startedAtMs = performance.now();
  const mock = await startMock(bench);
  const load = await startLoadGenerator(bench.children, bench.cores.load);
  const stage: Stage = { ...bench, mock, load, startedAtMs };
  const entries: Entry[] = [];
  for (const peer of bench.peers) entries.push(await introduce(stage, peer));
  for (const entry of entries) await warmUp(stage, entry);
  await measureRounds(stage, entries);
  if (bench.plan.wrkMs > 0) await crossCheck(stage, entries);
  return entries.map(({ results, rounds }) => ({
    ...results,
    scenarios: { ...mediansOf(rounds), ...results.scenarios },
  }));
}

/** Starts the mock upstream in a process of its own. */
export async function startMock({
  children,
  cores,
}: Pick<Bench, "children" | "cores">): Promise<{ port: number; child: Child }> {
  const entry = fileURLToPath(new URL("./mock-upstream.ts", import.meta.url));
  const child = children.spawn({
    name: "mock",
    command: [process.execPath, entry],
    cores: cores.mock,
  });
  const [, port] = await waitForLine(child, { pattern: /^mock ready (\d+)$/, timeoutMs: 10_000 });
  return { port: Number(port), child };
}

/**
 * Starts a peer twice, looks whether it answers as it should, and reads its memory with quiet
 * streams.
 */
async function introduce(stage: Stage, peer: Peer): Promise<Entry> {
  const results: PeerResults = {
    name: peer.name,
    version: "",
    work: peer.work,
    scenarios: {},
  };
  const entry: Entry = { peer, results, running: undefined, rounds: new Map() };
  try {
    const prepared = await peer.prepare();
    if (!prepared.ready) throw new Error(prepared.reason);
    results.version = prepared.version;
    stage.report(`${peer.name}: starting`);
    const running = await startTwice(stage, entry);
    await verifyPeer(peer, running);
    entry.running = running;
  } catch (error) {
    results.failure = textOf(error);
    stage.report(`${peer.name}: ${results.failure}`);
  }
  const { running } = entry;
  if (running?.readyMs !== undefined)
    results.streams = await measureMemory(stage, { peer, running });
  return entry;
}

async function startTwice(stage: Stage, { peer, results }: Entry): Promise<RunningPeer> {
  const directory = join(stage.directory, peer.name.replaceAll(" ", "-"));
  await mkdir(directory, { recursive: true });
  const context: PeerContext = {
    children: stage.children,
    cores: stage.cores,
    mock: stage.mock,
    directory,
  };
  const first = await peer.start(context);
  if (first.readyMs === undefined) return first;
  results.coldStartMs = first.readyMs;
  await verifyPeer(peer, first);
  await first.stop();
  const second = await peer.start(context);
  if (second.readyMs !== undefined) results.secondStartMs = second.readyMs;
  return second;
}

async function measureMemory(
  { load, mock, plan, report }: Stage,
  { peer, running }: { peer: Peer; running: RunningPeer },
): Promise<StreamsMemory | ScenarioFailure> {
  report(`${peer.name}: ${plan.quietStreams} quiet streams`);
  try {
    return await measureStreams({
      peer,
      running,
      load,
      mockPort: mock.port,
      count: plan.quietStreams,
    });
  } catch (error) {
    return { failure: textOf(error) };
  }
}

/** Lets a runtime compile its hot paths; a failure here shows again in the measured scenarios. */
async function warmUp({ load, plan }: Stage, { peer, running }: Entry): Promise<void> {
  if (running === undefined) return;
  for (const scenario of warmups) {
    const job = {
      ...windowJob({ peer, running, scenario }),
      warmupMs: 0,
      durationMs: plan.peerWarmupMs,
    };
    await load.closedLoop(job).catch(() => undefined);
  }
}

/**
 * Peers take turns within each scenario, and the order turns with the rounds, so that noise hits
 * all alike.
 */
async function measureRounds(stage: Stage, entries: readonly Entry[]): Promise<void> {
  const { plan, report, startedAtMs } = stage;
  let longestMs = 0;
  for (let round = 0; round < plan.rounds; round += 1) {
    const roundStartMs = performance.now();
    if (roundStartMs - startedAtMs + longestMs > plan.budgetMs)
      return report(`no time for round ${round + 1}`);
    for (const scenario of plan.scenarios) {
      report(`round ${round + 1} of ${plan.rounds}: ${scenario.name}`);
      await measureScenario(stage, { entries: rotated(entries, round), scenario });
    }
    longestMs = Math.max(longestMs, performance.now() - roundStartMs);
  }
}

interface Turn {
  entries: readonly Entry[];
  scenario: Scenario;
}

async function measureScenario(stage: Stage, { entries, scenario }: Turn): Promise<void> {
  const windows: { entry: Entry; result: LoadResult; rssKb: number | undefined }[] = [];
  for (const entry of entries) {
    const { peer, running } = entry;
    if (running === undefined || isFailed(entry, scenario)) continue;
    try {
      const result = await measureWindow(stage, { peer, running, scenario });
      windows.push({ entry, result, rssKb: memoryOf(processTree(running.pid))?.rssKb });
    } catch (error) {
      entry.results.scenarios[scenario.name] = { failure: textOf(error) };
    }
  }
  const baseline = windows.find(({ entry }) => entry.peer.name === "direct")?.result;
  for (const { entry, result, rssKb } of windows) {
    const figures = figuresOf(scenario, {
      result,
      rssKb,
      baseline: entry.peer.name === "direct" ? undefined : baseline,
    });
    entry.rounds.set(scenario.name, [...(entry.rounds.get(scenario.name) ?? []), figures]);
  }
}

const isFailed = (entry: Entry, scenario: Scenario): boolean => {
  const known = entry.results.scenarios[scenario.name];
  return known !== undefined && "failure" in known;
};

interface Window {
  peer: Peer;
  running: RunningPeer;
  scenario: Scenario;
}

async function measureWindow({ load, plan }: Stage, window: Window): Promise<LoadResult> {
  const durationMs = window.scenario.durationMs ?? plan.durationMs;
  const result = await load.closedLoop({
    ...windowJob(window),
    warmupMs: plan.warmupMs,
    durationMs,
  });
  if (
    result.errors * 100 > result.completed ||
    (result.completed === 0 && result.eventDelay.count === 0)
  ) {
    const all = result.errors + result.completed;
    throw new Error(
      `${result.errors} of ${all} failed: ${result.firstError ?? "none ended in time"}`,
    );
  }
  return result;
}

const windowJob = ({ peer, running, scenario }: Window) => ({
  target: {
    port: running.port,
    path: peer.path,
    headers: peer.headers,
    model: `${peer.modelPrefix}${scenario.model}`,
    stream: scenario.stream,
    bodyBytes: scenario.bodyBytes,
  },
  connections: scenario.connections,
  watchPids: processTree(running.pid),
  ...(scenario.ratePerSecond === undefined ? {} : { ratePerSecond: scenario.ratePerSecond }),
});

async function crossCheck(stage: Stage, entries: readonly Entry[]): Promise<void> {
  stage.report("cross-check with wrk");
  for (const { peer, running, results } of entries) {
    if (running === undefined) continue;
    const figure = await wrkRequestsPerSecond({
      peer,
      running,
      directory: stage.directory,
      durationMs: stage.plan.wrkMs,
      connections: wrkConnections,
      cores: stage.cores.load,
    });
    if (figure !== undefined) results.wrkRequestsPerSecond = figure;
  }
}

const mediansOf = (rounds: ReadonlyMap<string, Figures[]>): Record<string, Figures> =>
  Object.fromEntries([...rounds].map(([name, figures]) => [name, medianFigures(figures)]));

const rotated = <Item>(items: readonly Item[], by: number): Item[] => {
  const at = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(at), ...items.slice(0, at)];
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
