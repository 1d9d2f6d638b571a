import { Redis } from "ioredis";
import { backUp, restore } from "../end-to-end/nodes/support/database-copy.ts";
import type { Nodes } from "../end-to-end/nodes/support/nodes.ts";
import { commitFaults } from "../end-to-end/process/support/commit-faults.ts";
import type { GatewayProcess } from "../support/process.ts";

/** What breaks while requests run, and what ends it. */
export interface Scenario {
  name: string;
  /** Runs with `--quick` as well. */
  quick?: true;
  /** What clients were shown may be gone: the database was set back beneath them. */
  setsBack?: true;
  breaks(parts: ChaosParts): Promise<() => Promise<void>>;
}

/** What scenarios break. */
export interface ChaosParts {
  nodes: Nodes;
  databaseUrl: string;
  /** Gateways that clients ask, by turns; a scenario may replace one. */
  gateways: GatewayProcess[];
}

const nothing = async (): Promise<void> => undefined;

/** Sends one command to the server of shared state. */
async function command({ redis }: Nodes, name: string, ...values: string[]): Promise<void> {
  const client = new Redis(redis.url);
  try {
    await client.call(name, ...values);
  } finally {
    client.disconnect();
  }
}

const postgresFault =
  (name: string): Scenario["breaks"] =>
  async ({ databaseUrl, gateways: [gateway] }) => {
    const fault = commitFaults.find((each) => each.engine === "Postgres" && each.name === name);
    if (fault === undefined || gateway === undefined)
      throw new Error(`there is no fault of Postgres called ${name}`);
    return fault.begin(databaseUrl, gateway);
  };

const seconds = (count: number): Promise<void> => Bun.sleep(count * 1_000);

const pauseValkey =
  (length: number): Scenario["breaks"] =>
  async ({ nodes: { redis } }) => {
    redis.pause();
    await seconds(length);
    return async () => redis.resume();
  };

/** The failure modes, in the order of the table. */
export const scenarios: readonly Scenario[] = [
  {
    name: "kill -9 of a gateway",
    quick: true,
    async breaks({ gateways, nodes }) {
      await gateways[1]?.kill9();
      return async () => void (gateways[1] = await nodes.start());
    },
  },
  {
    name: "SIGTERM, one gateway after the other",
    async breaks({ gateways, nodes }) {
      for (const index of gateways.keys()) {
        const next = await nodes.start();
        const last = gateways[index];
        gateways[index] = next;
        await last?.terminate();
      }
      return nothing;
    },
  },
  {
    name: "a gateway suspended for 8 s",
    async breaks({ gateways: [, gateway] }) {
      gateway?.child.kill("SIGSTOP");
      await seconds(8);
      return async () => gateway?.child.kill("SIGCONT");
    },
  },
  {
    name: "kill -9 of Valkey",
    quick: true,
    async breaks({ nodes: { redis } }) {
      await redis.kill();
      return () => redis.restart();
    },
  },
  { name: "SIGSTOP of Valkey for 5 s", breaks: pauseValkey(5) },
  { name: "SIGSTOP of Valkey for 15 s", breaks: pauseValkey(15) },
  {
    name: "FLUSHALL",
    quick: true,
    async breaks({ nodes }) {
      await command(nodes, "FLUSHALL");
      return nothing;
    },
  },
  {
    name: "READONLY Valkey",
    async breaks({ nodes }) {
      await command(nodes, "REPLICAOF", "127.0.0.1", "1");
      await seconds(3);
      return () => command(nodes, "REPLICAOF", "NO", "ONE");
    },
  },
  {
    name: "OOM of Valkey",
    async breaks({ nodes }) {
      await command(nodes, "CONFIG", "SET", "maxmemory", "1");
      await seconds(3);
      return () => command(nodes, "CONFIG", "SET", "maxmemory", "0");
    },
  },
  {
    name: "two leaders",
    // The next gateway to ask leads, while the one before believes that it still does.
    async breaks({ nodes }) {
      for (let round = 0; round < 4; round += 1) {
        await command(nodes, "DEL", "switchyard:claim:leading");
        await seconds(1);
      }
      return nothing;
    },
  },
  { name: "read-only database", breaks: postgresFault("read-only") },
  { name: "a locked table", breaks: postgresFault("a locked table") },
  {
    name: "restored backup",
    setsBack: true,
    async breaks({ nodes }) {
      await backUp(nodes);
      await seconds(1);
      await restore(nodes);
      return nothing;
    },
  },
];
