import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { Redis } from "ioredis";
import { freePort } from "../end-to-end/process/support/ports.ts";
import { until } from "../end-to-end/nodes/support/until.ts";

/** The server program of this machine: Valkey, or Redis, which speaks the same protocol. */
const program = Bun.which("valkey-server") ?? Bun.which("redis-server");

/** Whether this machine can run a server; without one, the tests that need it are skipped. */
export const hasRedis = program !== null;

/**
 * The suffix for titles of tests that are skipped without a server; `scripts/run-tests.mjs` counts
 * these reasons.
 */
export const redisMissing = hasRedis ? "" : " (missing: redis-server or valkey-server)";

/** A separate Valkey or Redis on loopback that persists nothing. */
export interface RedisServer {
  /** URL of its first database. */
  url: string;
  /** Kills the server, with all of its data. */
  kill(): Promise<void>;
  /** Restarts it on the same port after `kill`, without data. */
  restart(): Promise<void>;
  /** Suspends the server: it answers nothing until `resume`. */
  pause(): void;
  resume(): void;
}

/**
 * A shell that runs the server and ends it as soon as the shell's own input ends, so when the test
 * process does, in whichever way.
 */
const keeper =
  'trap "" INT TERM; directory=$1; shift; "$@" & echo "pid $!"; ' +
  'cat > /dev/null; kill -9 $! 2> /dev/null; wait $!; rm -rf "$directory"';

export interface Launched {
  shell: Subprocess<"pipe", "pipe", "ignore">;
  serverPid: number;
}

/** Starts a server on a free port; it stops with this process at the latest. */
export async function startRedis(
  changes: Readonly<Record<string, string>> = {},
): Promise<RedisServer> {
  const port = freePort();
  let launched = await launch(port, changes);
  return {
    url: `redis://127.0.0.1:${port}`,
    kill: () => end(launched),
    restart: async () => void (launched = await launch(port, changes)),
    pause: () => process.kill(launched.serverPid, "SIGSTOP"),
    resume: () => process.kill(launched.serverPid, "SIGCONT"),
  };
}

/** Starts a server as `startRedis` does, on a port that the caller has chosen. */
export async function launch(
  port: number,
  changes: Readonly<Record<string, string>>,
): Promise<Launched> {
  if (program === null) throw new Error("neither valkey-server nor redis-server is installed");
  const directory = mkdtempSync(join(tmpdir(), "switchyard-redis-"));
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    save: "",
    appendonly: "no",
    databases: "1024",
    dir: directory,
    ...(changes["tls-port"] === undefined ? {} : { port: "0", "tls-port": String(port) }),
  };
  const { "tls-port": _port, ...others } = changes;
  const flags = Object.entries({ ...settings, ...others }).flatMap(([name, value]) => [
    `--${name}`,
    value,
  ]);
  return keep([program, ...flags], { directory, isReady: /ready to accept connections/i });
}

/** Runs the program until its keeper ends, which also removes its directory. */
async function keep(
  command: readonly string[],
  { directory, isReady }: { directory: string; isReady: RegExp },
): Promise<Launched> {
  const shell = Bun.spawn(["sh", "-c", keeper, "redis", directory, ...command], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  let log = "";
  const decoder = new TextDecoder();
  for await (const chunk of shell.stdout) {
    log += decoder.decode(chunk);
    const serverPid = /^pid (\d+)$/m.exec(log)?.[1];
    if (serverPid !== undefined && isReady.test(log))
      return { shell, serverPid: Number(serverPid) };
  }
  throw new Error(`the Redis of the tests did not start: ${log}`);
}

/** A primary with two replicas, and the three sentinels that watch them. */
export interface WatchedServers {
  /** URLs of the sentinels. */
  sentinelUrls: string[];
  /** Kills the server that the first sentinel names as the primary, with all of its data. */
  killPrimary(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one sentinel of one server; `lines` belong to its configuration. */
export async function startSentinel(
  name: string,
  primaryUrl: string,
  lines: readonly string[],
): Promise<{ url: string; kill(): Promise<void> }> {
  const port = freePort();
  const watched = `sentinel monitor ${name} 127.0.0.1 ${new URL(primaryUrl).port} 1`;
  const sentinel = await launchSentinel([
    ...(lines.some((line) => line.startsWith("tls-"))
      ? ["port 0", `tls-port ${port}`]
      : [`port ${port}`]),
    watched,
    ...lines,
  ]);
  return { url: `redis://127.0.0.1:${port}`, kill: () => end(sentinel) };
}

/**
 * Returns lines of a sentinel's configuration; it fails over once two sentinels have missed the
 * primary for 5 s.
 */
const sentinelLines = (name: string, primaryPort: number): string[] => [
  `sentinel monitor ${name} 127.0.0.1 ${primaryPort} 2`,
  `sentinel down-after-milliseconds ${name} 5000`,
  `sentinel failover-timeout ${name} 10000`,
];

async function launchSentinel(lines: readonly string[]): Promise<Launched> {
  if (program === null) throw new Error("neither valkey-server nor redis-server is installed");
  const directory = mkdtempSync(join(tmpdir(), "switchyard-sentinel-"));
  const path = join(directory, "sentinel.conf");
  writeFileSync(path, ["bind 127.0.0.1", ...lines, ""].join("\n"));
  return keep([program, path, "--sentinel"], { directory, isReady: /\+monitor/ });
}

export const end = async ({ shell }: Launched): Promise<void> => {
  shell.stdin.end();
  await shell.exited;
};

/**
 * Starts the servers and waits until each sentinel knows both replicas and the other two sentinels,
 * as a failover requires.
 */
export async function startWatchedServers(name: string): Promise<WatchedServers> {
  const ports = [freePort(), freePort(), freePort()] as const;
  const replicas = { replicaof: `127.0.0.1 ${ports[0]}` };
  const servers = await Promise.all([
    launch(ports[0], {}),
    launch(ports[1], replicas),
    launch(ports[2], replicas),
  ]);
  const sentinelPorts = [freePort(), freePort(), freePort()];
  const sentinels = await Promise.all(
    sentinelPorts.map((port) => launchSentinel([`port ${port}`, ...sentinelLines(name, ports[0])])),
  );
  await Promise.all(
    sentinelPorts.map((port) => untilSentinel(port, name, { replicas: 2, sentinels: 2 })),
  );
  const sentinelUrls = sentinelPorts.map((port) => `redis://127.0.0.1:${port}`);
  return {
    sentinelUrls,
    async killPrimary() {
      const client = new Redis(sentinelUrls[0]!);
      const [, port] = (await client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)) as string[];
      client.disconnect();
      await end(servers[ports.findIndex((each) => String(each) === port)]!);
    },
    stop: async () => void (await Promise.all([...sentinels, ...servers].map(end))),
  };
}

/** Waits until a sentinel counts as many replicas and other sentinels as exist. */
export async function untilSentinel(
  port: number,
  name: string,
  { replicas, sentinels }: { replicas: number; sentinels: number },
): Promise<void> {
  const client = new Redis(`redis://127.0.0.1:${port}`);
  const isKnown = async (): Promise<boolean> => {
    const facts = (await client.call("SENTINEL", "MASTER", name)) as string[];
    const fact = (key: string): number => Number(facts[facts.indexOf(key) + 1]);
    return fact("num-slaves") >= replicas && fact("num-other-sentinels") >= sentinels;
  };
  try {
    await until(isKnown, { patienceMs: 120_000, what: "a sentinel knows the others" });
  } finally {
    client.disconnect();
  }
}

let shared: Promise<RedisServer> | undefined;
let databaseCount = 0;

/** Returns the URL of an empty database on the server that the tests of one process share. */
export async function freshRedis(): Promise<string> {
  shared ??= startRedis();
  databaseCount += 1;
  return `${(await shared).url}/${databaseCount}`;
}
