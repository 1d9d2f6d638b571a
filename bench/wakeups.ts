/**
 * Counts, by thread, how often a gateway is woken and how much processor time it takes: for each
 * request at the rates of a quiet hour, for each event of paced streams, and for each second
 * without requests. Counts of wake-ups hold on a busy machine, where times do not.
 */
import { rmSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startLoadGenerator, type LoadGenerator } from "./load/load-generator.ts";
import { floor } from "./peers/floor.ts";
import { gateway } from "./peers/gateway.ts";
import type { Peer, RunningPeer } from "./peers/peer.ts";
import { Children, stopOnSignals } from "./process/children.ts";
import { assignCores } from "./process/cores.ts";
import { processTree } from "./process/proc-stat.ts";
import { addUse, readThreadUses, usedBetween, type ThreadUse } from "./process/thread-use.ts";
import { alignedTable } from "./report.ts";
import { startMock } from "./run-benchmark.ts";
import { warmups } from "./scenarios.ts";
import { verifyPeer } from "./verify-peer.ts";

const usage = `npm run bench:wakeups -- [--peers gateway,floor] [--load idle,50,300,500,streams]
    [--rounds 3] [--seconds 5] [--warmup 10] [--settle 5] [--before DIRECTORY] [--variant NAME=VALUE]...
  --variant  also measures this gateway with an environment variable more, under its name`;

const { values: options } = parseArgs({
  options: {
    peers: { type: "string", default: "gateway process,floor process" },
    load: { type: "string", default: "idle,50,300,500,streams" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "5" },
    warmup: { type: "string", default: "10" },
    settle: { type: "string", default: "5" },
    before: { type: "string" },
    variant: { type: "string", multiple: true, default: [] },
    help: { type: "boolean", default: false },
  },
});

/** One load: its rate, and what its figures are divided by. */
interface Load {
  name: string;
  ratePerSecond: number | undefined;
  stream: boolean;
  per: "second" | "request" | "event";
}

function loadOf(text: string): Load {
  if (text === "idle")
    return { name: text, ratePerSecond: undefined, stream: false, per: "second" };
  if (text === "streams") return { name: text, ratePerSecond: 50, stream: true, per: "event" };
  const ratePerSecond = Number(text);
  if (!(ratePerSecond > 0)) throw new Error(`--load ${text}: expected idle, streams or a rate`);
  return { name: `${text}/s`, ratePerSecond, stream: false, per: "request" };
}

/** What a peer used under one load, over all rounds. */
interface Sum {
  units: number;
  p50Us: number[];
  threads: Map<string, ThreadUse>;
}

/** A peer, and its sums by load. */
interface Entry {
  peer: Peer;
  running: RunningPeer;
  sums: Map<string, Sum>;
}

function wantedPeers(): Peer[] {
  const before = options.before === undefined ? [] : [resolve(options.before)];
  const known = (["process", "power"] as const).flatMap((durability) => [
    gateway(durability),
    ...before.map((directory) => gateway(durability, { name: "before", directory })),
    ...options.variant.map((text) => {
      const environment = Object.fromEntries(text.split(" ").map((each) => each.split("=", 2)));
      return gateway(durability, { name: text, environment });
    }),
    floor(durability),
  ]);
  const names = options.peers.split(",").map((name) => name.trim());
  const durability = options.peers.includes("power") ? "power" : "process";
  return known.filter(
    ({ name }) =>
      names.some((each) => name.startsWith(each)) ||
      (name.includes("=") && name.endsWith(durability)),
  );
}

async function measure(
  { peer, running, sums }: Entry,
  { load, generator }: { load: Load; generator: LoadGenerator },
): Promise<void> {
  const seconds = Number(options.seconds);
  const pids = processTree(running.pid);
  const before = readThreadUses(pids);
  let units = seconds;
  let p50Us = 0;
  if (load.ratePerSecond === undefined) await Bun.sleep(seconds * 1000);
  else {
    const result = await generator.closedLoop({
      target: {
        port: running.port,
        path: peer.path,
        headers: peer.headers,
        model: `${peer.modelPrefix}${load.stream ? "paced" : "large"}`,
        stream: load.stream,
        bodyBytes: 1_000,
      },
      connections: load.stream ? 100 : 10,
      ratePerSecond: load.ratePerSecond,
      warmupMs: 0,
      durationMs: seconds * 1000,
      watchPids: [],
    });
    units = load.stream ? result.eventDelay.count : result.completed;
    p50Us = load.stream ? result.firstByte.p50Us : result.latency.p50Us;
  }
  const known: Sum = sums.get(load.name) ?? { units: 0, p50Us: [], threads: new Map() };
  sums.set(load.name, known);
  known.units += units;
  known.p50Us.push(p50Us);
  for (const [name, use] of usedBetween(before, readThreadUses(pids), { pids }))
    addUse(known.threads, name, use);
}

function rowsOf(load: Load, entries: readonly Entry[]): string[][] {
  return entries.flatMap(({ peer, sums }) => {
    const found = sums.get(load.name);
    if (found === undefined) return [];
    const sum = new Map<string, ThreadUse>();
    for (const use of found.threads.values()) addUse(sum, "all", use);
    const p50Ms = (found.p50Us.toSorted((a, b) => a - b)[found.p50Us.length >> 1] ?? 0) / 1000;
    const threads = [...found.threads].toSorted(([, a], [, b]) => b.cpuUs - a.cpuUs);
    return [...sum, ...threads].flatMap(([name, use], index) => {
      const each = (value: number): number => value / found.units;
      // Threads of a pool that did nothing.
      if (each(use.cpuUs) < 0.5 && each(use.wakes) < 0.01) return [];
      return [
        [
          load.name,
          peer.name,
          name,
          each(use.wakes).toFixed(2),
          each(use.preempted).toFixed(2),
          each(use.faults).toFixed(2),
          each(use.cpuUs).toFixed(1),
          index === 0 && p50Ms > 0 ? p50Ms.toFixed(2) : "",
          load.per,
        ],
      ];
    });
  });
}

async function main(directory: string, children: Children): Promise<void> {
  const cores = assignCores();
  const mock = await startMock({ children, cores });
  const generator = await startLoadGenerator(children, cores.load);
  const entries: Entry[] = [];
  for (const peer of wantedPeers()) {
    const own = join(directory, peer.name.replaceAll(" ", "-"));
    await mkdir(own, { recursive: true });
    const running = await peer.start({ children, cores, mock, directory: own });
    await verifyPeer(peer, running);
    for (const { stream, model, bodyBytes, connections } of warmups)
      await generator.closedLoop({
        target: {
          port: running.port,
          path: peer.path,
          headers: peer.headers,
          model: `${peer.modelPrefix}${model}`,
          stream,
          bodyBytes,
        },
        connections,
        warmupMs: 0,
        durationMs: (Number(options.warmup) * 1000) / warmups.length,
        watchPids: [],
      });
    entries.push({ peer, running, sums: new Map() });
  }
  const loads = options.load.split(",").map((text) => loadOf(text.trim()));
  // What the warm-up has left behind is collected before anything is counted.
  await Bun.sleep(Number(options.settle) * 1000);
  for (let round = 0; round < Number(options.rounds); round += 1)
    for (const load of loads)
      for (const entry of round % 2 === 0 ? entries : entries.toReversed())
        await measure(entry, { load, generator });
  const head = [
    "load",
    "peer",
    "thread",
    "wakes",
    "preempted",
    "faults",
    "cpu us",
    "p50 ms",
    "for each",
  ];
  console.log(alignedTable([head, ...loads.flatMap((load) => rowsOf(load, entries))]));
}

if (options.help) console.log(usage);
else {
  const directory = await mkdtemp(join(tmpdir(), "switchyard-wakeups-"));
  const children = new Children(directory);
  stopOnSignals(children);
  try {
    await main(directory, children);
  } finally {
    await children.stopAll();
    rmSync(directory, { recursive: true, force: true });
  }
}
process.exit();
