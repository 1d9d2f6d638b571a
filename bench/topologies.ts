/**
 * Measures one embedded gateway, two processes of one gateway on Postgres and Valkey, and three
 * gateways on them, in turns: what a request costs each program, and what it is delayed by. With
 * `--slow-disk`, measures one and three gateways whose Postgres has a slow disk (decision 0147).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { hasRedis, startRedis } from "../test/support/redis.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { chatTarget, measureTurn, type TurnLoad } from "./topologies/measure-turn.ts";
import { slowDownCommits, slowDiskMs } from "./topologies/slow-disk.ts";
import {
  sharedTopologies,
  startTopology,
  topologies,
  type RunningTopology,
} from "./topologies/start-topology.ts";
import { latencyRatio, topologyTable, type TopologyTurn } from "./topologies/topology-table.ts";
import { startLoadGenerator } from "./load/load-generator.ts";
import { describeMachine } from "./machine.ts";
import { Children, stopOnSignals } from "./process/children.ts";
import { startMock } from "./run-benchmark.ts";

const { values: options } = parseArgs({
  options: {
    turns: { type: "string", default: "5" },
    "slow-disk": { type: "boolean", default: false },
  },
});
const hasSlowDisk = options["slow-disk"];

const allLoads: readonly TurnLoad[] = [
  { name: "as fast as 24 connections go", durationMs: 2_000 },
  { name: "200 requests a second", durationMs: 3_000, ratePerSecond: 200 },
];
const slowDiskLoads: readonly TurnLoad[] = [
  {
    name: `300 requests a second, ${slowDiskMs} ms a flush`,
    durationMs: 5_000,
    ratePerSecond: 300,
  },
];
/**
 * Compiles code and opens connections before the measurement; three gateways compile three times.
 */
const warmUp: TurnLoad = { name: "warm-up", durationMs: 15_000 };

async function main(directory: string, children: Children): Promise<void> {
  if (!hasRedis) throw new Error("neither valkey-server nor redis-server is installed");
  const mock = await startMock({ children, cores: {} });
  const generators = await Promise.all(
    [1, 2, 3].map(() => startLoadGenerator(children, undefined)),
  );
  const postgres = await startPostgres();
  if (hasSlowDisk) await slowDownCommits(postgres.url);
  const direct = { ports: [mock.port], headers: { authorization: "Bearer x" }, model: "large" };
  const running: RunningTopology[] = [];
  const loads = hasSlowDisk ? slowDiskLoads : allLoads;
  for (const topology of hasSlowDisk ? sharedTopologies : topologies) {
    console.error(`bench: starting ${topology.name}`);
    running.push(
      await startTopology(topology, {
        children,
        directory,
        mockPort: mock.port,
        databaseUrl: await postgres.freshDatabase(),
        redisUrl: (await startRedis()).url,
      }),
    );
  }
  for (const each of running) await measureTurn(generators, chatTarget(each), warmUp);
  const turns: TopologyTurn[] = [];
  for (let turn = 0; turn < Number(options.turns); turn += 1) {
    for (const load of loads) {
      const baseline = await measureTurn(generators, direct, load);
      const order = running.map((_, at) => running[(at + turn) % running.length]);
      for (const each of order.flatMap((one) => one ?? [])) {
        const measured = await measureTurn(generators, chatTarget(each), load);
        const addedP50Us = measured.p50Us - baseline.p50Us;
        turns.push({ turn, topology: each.name, load: load.name, ...measured, addedP50Us });
      }
    }
  }
  console.log(topologyTable(turns));
  if (hasSlowDisk) console.log(latencyRatio(turns));
  await postgres.stop();
}

const directory = mkdtempSync(join(tmpdir(), "switchyard-topologies-"));
const children = new Children(directory);
stopOnSignals(children);
const loadText = (): string =>
  loadavg()
    .map((load) => load.toFixed(1))
    .join(" ");
const machine = describeMachine(directory);
console.log(`${machine.cpu}, ${machine.cores} cores, ${machine.commit}; load before ${loadText()}`);
try {
  await main(directory, children);
  console.log(`load after ${loadText()}`);
} finally {
  await children.stopAll();
  rmSync(directory, { recursive: true, force: true });
}
process.exit();
