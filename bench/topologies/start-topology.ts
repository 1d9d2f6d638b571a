import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { Client } from "pg";
import { gatewayEnvironment, mockProviderYaml } from "../peers/gateway.ts";
import { waitForLine, type Child, type Children } from "../process/children.ts";
import { parentOf, processTree } from "../process/proc-stat.ts";

/** One way to run the gateway. */
export interface Topology {
  name: string;
  gateways: number;
  /** `server.processes` of each. */
  processes: number;
  /** On Postgres and Valkey, in place of SQLite and memory. */
  isShared: boolean;
}

/** What is compared; the first is what the others are held against. */
export const topologies: readonly Topology[] = [
  { name: "embedded", gateways: 1, processes: 1, isShared: false },
  { name: "2 processes", gateways: 1, processes: 2, isShared: true },
  { name: "3 gateways", gateways: 3, processes: 1, isShared: true },
];

/** What is compared on a slow disk: gateways that commit to the same rows, against one alone. */
export const sharedTopologies: readonly Topology[] = [
  { name: "1 gateway", gateways: 1, processes: 1, isShared: true },
  { name: "3 gateways", gateways: 3, processes: 1, isShared: true },
];

/** What a topology is started with. */
export interface TopologyContext {
  children: Children;
  directory: string;
  mockPort: number;
  /** An empty database of Postgres. */
  databaseUrl: string;
  redisUrl: string;
}

/** A topology that serves. */
export interface RunningTopology {
  name: string;
  ports: number[];
  /** Key of its workspace. */
  key: string;
  /** Processes of each part, as they are at the moment. */
  processes: Record<"gateway" | "postgres" | "valkey", () => number[]>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const startTimeoutMs = 60_000;

/** Starts every gateway of a topology, the first one alone: it migrates the database. */
export async function startTopology(
  topology: Topology,
  context: TopologyContext,
): Promise<RunningTopology> {
  const key = `sk-svc-v1-${randomBytes(24).toString("hex")}`;
  const started: Child[] = [];
  const ports: number[] = [];
  for (let index = 0; index < topology.gateways; index += 1) {
    const child = await spawnGateway(topology, { ...context, key, index });
    const pattern = /^switchyard ready http:\/\/\S+:(\d+)/;
    const [, port] = await waitForLine(child, { pattern, timeoutMs: startTimeoutMs });
    started.push(child);
    ports.push(Number(port));
  }
  const servers = topology.isShared ? await serverPids(context) : undefined;
  return {
    name: topology.name,
    ports,
    key,
    processes: {
      gateway: () => started.flatMap(({ pid }) => processTree(pid)),
      postgres: () => (servers === undefined ? [] : processTree(servers.postgres)),
      valkey: () => (servers === undefined ? [] : [servers.valkey]),
    },
  };
}

async function spawnGateway(
  { name, processes, isShared }: Topology,
  context: TopologyContext & { key: string; index: number },
): Promise<Child> {
  const { children, mockPort, databaseUrl, redisUrl, key, index } = context;
  const title = `${name.replaceAll(" ", "-")}-${index}`;
  const dataDirectory = join(context.directory, title);
  const configPath = join(dataDirectory, "switchyard.yaml");
  await mkdir(dataDirectory, { recursive: true });
  const server = isShared ? `server: { processes: ${processes} }\n` : "";
  await writeFile(configPath, `${server}${mockProviderYaml(mockPort)}`);
  return children.spawn({
    name: title,
    command: [process.execPath, "src/main.ts"],
    directory: root,
    environment: {
      ...gatewayEnvironment({ configPath, dataDirectory, key }),
      ...(isShared && {
        DATABASE_URL: databaseUrl,
        REDIS_URL: redisUrl,
        SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
      }),
    },
  });
}

/** The processes that serve a database of Postgres and Valkey. */
async function serverPids({
  databaseUrl,
  redisUrl,
}: TopologyContext): Promise<{ postgres: number; valkey: number }> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const postgres = parentOf(Number(rows[0]?.pid));
  await client.end();
  const redis = new Redis(redisUrl);
  const valkey = Number(/^process_id:(\d+)/m.exec(await redis.info("server"))?.[1]);
  redis.disconnect();
  if (postgres === undefined) throw new Error("the processes of Postgres cannot be read");
  return { postgres, valkey };
}
