import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { Client } from "pg";
import { backUp, restore } from "../end-to-end/nodes/support/database-copy.ts";
import { commitFaults } from "../end-to-end/process/support/commit-faults.ts";
import type { Load } from "./load.ts";
import type { ChaosParts, LinkName, Topology } from "./parts.ts";

/** What breaks while requests run, and what ends it. */
export interface Scenario {
  name: string;
  on: readonly Topology[];
  /** Runs with `--quick` as well. */
  quick?: true;
  /** What clients were shown may be gone: the database was set back beneath them. */
  setsBack?: true;
  /** The gateway that is broken itself, where the others are not. */
  broken?: number;
  link?: LinkName;
  minutesAhead?: readonly number[];
  breaks(parts: ChaosParts, load: Load): Promise<() => Promise<void>>;
}

const everywhere = ["embedded", "one node", "three nodes"] as const;
const nodes = ["one node", "three nodes"] as const;

const nothing = async (): Promise<void> => undefined;
const seconds = (count: number): Promise<void> => Bun.sleep(count * 1_000);

function sharedOf({ shared }: ChaosParts): NonNullable<ChaosParts["shared"]> {
  if (shared === undefined) throw new Error("an embedded gateway shares nothing");
  return shared;
}

/** Sends one command to the server of shared state. */
async function command(parts: ChaosParts, name: string, ...values: string[]): Promise<void> {
  const client = new Redis(sharedOf(parts).redis.url);
  try {
    await client.call(name, ...values);
  } finally {
    client.disconnect();
  }
}

/** A way in which the database takes no commits, for so long. */
const refusedCommits =
  (name: string, length: number): Scenario["breaks"] =>
  async (parts) => {
    const engine = parts.shared === undefined ? "SQLite" : "Postgres";
    const fault = commitFaults.find((each) => each.engine === engine && each.name === name);
    const [gateway] = parts.gateways;
    if (fault === undefined || gateway === undefined)
      throw new Error(`there is no fault of ${engine} called ${name}`);
    const mend = await fault.begin(parts.place, gateway);
    await seconds(length);
    return mend;
  };

/** The process that serves one connection to Postgres, and the parent of all of them. */
async function postgresProcesses(parts: ChaosParts): Promise<{ parent: number; one: number }> {
  const [row] = await parts.query(
    "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1",
  );
  const one = Number(row?.["pid"]);
  const parent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${one}/status`, "utf8"))?.[1];
  return { parent: Number(parent), one };
}

/** Whether a restore has to be tried again; throws what else it failed of. */
function isDeadlock(error: unknown): false {
  if (Reflect.get(Object(error), "code") === "40P01") return false;
  throw error;
}

const childrenOf = (parent: number): number[] =>
  readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8")
    .split(" ")
    .map(Number)
    .filter(Boolean);

const stopPostgres =
  (length: number): Scenario["breaks"] =>
  async (parts) => {
    const { parent } = await postgresProcesses(parts);
    // The parent first, so that it begets no more.
    process.kill(parent, "SIGSTOP");
    const stopped = [...childrenOf(parent), parent];
    for (const pid of stopped) process.kill(pid, "SIGSTOP");
    await seconds(length);
    return async () => {
      for (const pid of stopped) process.kill(pid, "SIGCONT");
    };
  };

const stopValkey =
  (length: number): Scenario["breaks"] =>
  async (parts) => {
    const { redis } = sharedOf(parts);
    redis.pause();
    await seconds(length);
    return async () => redis.resume();
  };

/** 20 ms and one lost segment in a hundred, for so long. */
const slowLink =
  (length: number): Scenario["breaks"] =>
  async ({ link }) => {
    if (link === undefined) throw new Error("the scenario names no link");
    link.quality = { roundTripMs: 20, loss: 0.01 };
    await seconds(length);
    return async () => void (link.quality = { roundTripMs: 0, loss: 0 });
  };

/** How many gateways the server of shared state takes for dead. */
async function lapsedGateways(parts: ChaosParts): Promise<number> {
  const client = new Redis(sharedOf(parts).redis.url);
  try {
    const names = await client.keys("switchyard:ledger:*:nodes");
    const [seconds] = await client.time();
    const counts = names.map((name) => client.zcount(name, "-inf", Number(seconds) * 1_000));
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  } finally {
    client.disconnect();
  }
}

/** Answers that are served while something lasts that takes no time of its own. */
const servedMeanwhile = 200;

/** The failure modes, in the order of the table. */
export const scenarios: readonly Scenario[] = [
  {
    name: "kill -9 of a gateway",
    on: everywhere,
    quick: true,
    broken: 0,
    async breaks({ gateways, start }) {
      await gateways[0]?.kill9();
      return async () => void (gateways[0] = await start());
    },
  },
  {
    name: "SIGTERM, one gateway after the other",
    on: everywhere,
    async breaks({ gateways, start, shared }) {
      for (const index of gateways.keys()) {
        const last = gateways[index];
        // A gateway on SQLite waits for its predecessor to go.
        if (shared === undefined) await last?.terminate();
        const next = await start();
        gateways[index] = next;
        if (shared !== undefined) await last?.terminate();
      }
      return nothing;
    },
  },
  {
    name: "a gateway suspended for 8 s",
    on: ["embedded", "one node"],
    async breaks({ gateways: [gateway] }) {
      gateway?.child.kill("SIGSTOP");
      await seconds(8);
      return async () => gateway?.child.kill("SIGCONT");
    },
  },
  {
    name: "a gateway suspended until the others have freed its holds",
    on: ["three nodes"],
    quick: true,
    broken: 2,
    async breaks(parts, load) {
      const [, , gateway] = parts.gateways;
      gateway?.child.kill("SIGSTOP");
      while ((await lapsedGateways(parts)) === 0) await load.untilServed(1);
      await load.untilServed(servedMeanwhile);
      return async () => gateway?.child.kill("SIGCONT");
    },
  },
  {
    name: "kill -9 of Valkey",
    on: nodes,
    quick: true,
    async breaks(parts) {
      const { redis } = sharedOf(parts);
      await redis.kill();
      return () => redis.restart();
    },
  },
  { name: "SIGSTOP of Valkey for 5 s", on: nodes, breaks: stopValkey(5) },
  { name: "SIGSTOP of Valkey for 15 s", on: nodes, breaks: stopValkey(15) },
  {
    name: "FLUSHALL",
    on: nodes,
    quick: true,
    async breaks(parts) {
      await command(parts, "FLUSHALL");
      return nothing;
    },
  },
  {
    name: "READONLY Valkey",
    on: nodes,
    async breaks(parts) {
      await command(parts, "REPLICAOF", "127.0.0.1", "1");
      await seconds(3);
      return () => command(parts, "REPLICAOF", "NO", "ONE");
    },
  },
  {
    name: "OOM of Valkey",
    on: nodes,
    async breaks(parts) {
      await command(parts, "CONFIG", "SET", "maxmemory", "1");
      await seconds(3);
      return () => command(parts, "CONFIG", "SET", "maxmemory", "0");
    },
  },
  {
    name: "two leaders",
    on: ["three nodes"],
    quick: true,
    // The next gateway to ask leads, while the one before believes that it still does.
    async breaks(parts, load) {
      for (let round = 0; round < 4; round += 1) {
        await command(parts, "DEL", "switchyard:claim:leading");
        await load.untilServed(servedMeanwhile / 2);
      }
      return nothing;
    },
  },
  {
    name: "kill -9 of a process of Postgres, which restarts all",
    on: nodes,
    async breaks(parts) {
      const { one } = await postgresProcesses(parts);
      const witness = new Client({ connectionString: parts.place });
      await witness.connect();
      const ended = new Promise((resolve) => witness.once("error", resolve));
      process.kill(one, "SIGKILL");
      await ended;
      // Its recovery takes as long as the disk does.
      while (!(await parts.query("select 1").then(Boolean, () => false))) await seconds(0.05);
      return nothing;
    },
  },
  { name: "SIGSTOP of Postgres for 5 s", on: nodes, breaks: stopPostgres(5) },
  { name: "SIGSTOP of Postgres for 15 s", on: nodes, breaks: stopPostgres(15) },
  { name: "read-only database", on: everywhere, breaks: refusedCommits("read-only", 3) },
  { name: "a full disk", on: everywhere, breaks: refusedCommits("a full disk", 3) },
  { name: "a locked table", on: everywhere, breaks: refusedCommits("a locked table", 8) },
  {
    name: "restored backup",
    on: nodes,
    setsBack: true,
    async breaks(parts) {
      await backUp(parts);
      await seconds(1);
      // A gateway may hold what the restore wants, and want what it holds.
      while (!(await restore(parts).then(() => true, isDeadlock))) await seconds(0.05);
      return nothing;
    },
  },
  { name: "20 ms and 1 % loss to Valkey", on: nodes, link: "Valkey", breaks: slowLink(8) },
  { name: "20 ms and 1 % loss to Postgres", on: nodes, link: "Postgres", breaks: slowLink(8) },
  {
    name: "20 ms and 1 % loss to the provider",
    on: everywhere,
    link: "the provider",
    breaks: slowLink(8),
  },
  {
    name: "clocks 3 minutes behind and ahead",
    on: ["three nodes"],
    quick: true,
    minutesAhead: [-3, 0, 3],
    async breaks(_, load) {
      await load.untilServed(2 * servedMeanwhile);
      return nothing;
    },
  },
];
