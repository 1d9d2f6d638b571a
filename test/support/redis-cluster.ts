import { Redis } from "ioredis";
import { freePort } from "../end-to-end/process/support/ports.ts";
import { until } from "../end-to-end/nodes/support/until.ts";
import { end, launch, type Launched } from "./redis.ts";

const slotCount = 16_384;
const patienceMs = 120_000;
const keysAtOnce = 100;

/** A server of a test's cluster. */
export interface ClusterServer {
  port: number;
  /** A connection for the test's own commands. */
  client: Redis;
}

/** A cluster on loopback whose servers store nothing on disk. */
export interface RedisCluster {
  /** The URL of the first primary. */
  url: string;
  /** The primaries at the start, in the order of their slots. */
  primaries: readonly ClusterServer[];
  /** The replicas, all of them of the first primary. */
  replicas: readonly ClusterServer[];
  /** Kills a server, which loses all of its data. */
  kill(server: ClusterServer): Promise<void>;
  /** Stops all servers. */
  stop(): Promise<void>;
}

/**
 * Starts primaries that share the slots evenly, and replicas of the first one. Resolves once all
 * servers know each other. Unless `settings` say otherwise, a server counts as dead only after a
 * minute, so that none does on a busy machine.
 */
export async function startRedisCluster({
  primaries: primaryCount = 3,
  replicas: replicaCount = 0,
  settings = {},
  access = {},
}: {
  primaries?: number;
  replicas?: number;
  settings?: Readonly<Record<string, string>>;
  /** The password and TLS of the test's own connections, where `settings` require them. */
  access?: { password?: string; tls?: { ca: string } };
} = {}): Promise<RedisCluster> {
  const launched = new Map<number, Launched>();
  const start = async (): Promise<ClusterServer & { busPort: number }> => {
    const [port, busPort] = [freePort(), freePort()];
    launched.set(
      port,
      await launch(port, { ...clusterSettings, ...settings, "cluster-port": String(busPort) }),
    );
    return { port, busPort, client: new Redis({ ...access, host: "127.0.0.1", port }) };
  };
  const servers = await Promise.all(Array.from({ length: primaryCount + replicaCount }, start));
  const primaries = servers.slice(0, primaryCount);
  const replicas = servers.slice(primaryCount);
  const boundary = (index: number): number => Math.floor((index * slotCount) / primaryCount);
  for (const [index, { client }] of primaries.entries()) {
    await client.call("CLUSTER", "ADDSLOTSRANGE", boundary(index), boundary(index + 1) - 1);
    await client.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
  }
  const [first] = primaries;
  if (first === undefined) throw new Error("a cluster has a primary at least");
  for (const { port, busPort } of servers.slice(1))
    await first.client.call("CLUSTER", "MEET", "127.0.0.1", port, busPort);
  await Promise.all(servers.map((server) => untilKnowing(server, servers.length)));
  const firstId = await idOf(first);
  await Promise.all(replicas.map(({ client }) => client.call("CLUSTER", "REPLICATE", firstId)));
  await Promise.all(replicas.map(untilFollowing));
  return {
    url: `redis://127.0.0.1:${first.port}`,
    primaries,
    replicas,
    async kill({ port, client }) {
      client.disconnect();
      await end(launched.get(port)!);
    },
    async stop() {
      for (const { client } of servers) client.disconnect();
      await Promise.all([...launched.values()].map(end));
    },
  };
}

const clusterSettings = {
  "cluster-enabled": "yes",
  "cluster-node-timeout": "60000",
  "cluster-require-full-coverage": "no",
  "repl-diskless-sync-delay": "0",
  databases: "1",
};

const idOf = async ({ client }: ClusterServer): Promise<string> =>
  String(await client.call("CLUSTER", "MYID"));

/** Waits until a server is connected to `count` servers and knows the owner of every slot. */
const untilKnowing = ({ client }: ClusterServer, count: number): Promise<void> =>
  until(
    async () => {
      const nodes = String(await client.call("CLUSTER", "NODES"))
        .trim()
        .split("\n");
      const isLinked = (line: string): boolean =>
        line.split(" ")[7] === "connected" && !/handshake|fail/.test(line.split(" ")[2] ?? "");
      const facts = String(await client.call("CLUSTER", "INFO"));
      return nodes.length === count && nodes.every(isLinked) && facts.includes("cluster_state:ok");
    },
    { patienceMs, what: "the servers of a cluster know each other" },
  );

const untilFollowing = ({ client }: ClusterServer): Promise<void> =>
  until(async () => (await client.info("replication")).includes("master_link_status:up"), {
    patienceMs,
    what: "a replica follows its primary",
  });

/** Begins to move a slot between primaries; its keys are still at the old one. */
export async function beginMove(
  slot: number,
  { from, to }: { from: ClusterServer; to: ClusterServer },
): Promise<void> {
  await to.client.call("CLUSTER", "SETSLOT", slot, "IMPORTING", await idOf(from));
  await from.client.call("CLUSTER", "SETSLOT", slot, "MIGRATING", await idOf(to));
}

/** Moves all keys of a slot whose move has begun, as `redis-cli --cluster reshard` does. */
export async function moveNames(
  slot: number,
  { from, to }: { from: ClusterServer; to: ClusterServer },
): Promise<void> {
  for (;;) {
    const asked = from.client.call("CLUSTER", "GETKEYSINSLOT", slot, keysAtOnce);
    const names = (await asked) as string[];
    if (names.length === 0) return;
    await moveSome(names, { from, to });
  }
}

/** Moves some keys of a slot whose move has begun. */
export async function moveSome(
  names: readonly string[],
  { from, to }: { from: ClusterServer; to: ClusterServer },
): Promise<void> {
  await from.client.call("MIGRATE", "127.0.0.1", to.port, "", 0, 30_000, "KEYS", ...names);
}

/** Gives a slot to its new server, once its keys have moved. */
export async function endMove(
  slot: number,
  { from, to }: { from: ClusterServer; to: ClusterServer },
): Promise<void> {
  const id = await idOf(to);
  for (const { client } of [to, from]) await client.call("CLUSTER", "SETSLOT", slot, "NODE", id);
}

/** Moves a slot and its keys from one primary to another. */
export async function moveSlot(
  slot: number,
  ends: { from: ClusterServer; to: ClusterServer },
): Promise<void> {
  await beginMove(slot, ends);
  await moveNames(slot, ends);
  await endMove(slot, ends);
}
