import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { freePort } from "../end-to-end/process/support/ports.ts";

/** The server program of the machine: Valkey, or Redis, which speaks the same. */
const program = Bun.which("valkey-server") ?? Bun.which("redis-server");

/** Whether this machine can run one; without it the tests that need it are skipped. */
export const hasRedis = program !== null;

/**
 * What the titles of such tests end with where they are skipped; `scripts/run-tests.mjs` counts the
 * reasons.
 */
export const redisMissing = hasRedis ? "" : " (missing: redis-server or valkey-server)";

/** A Valkey or Redis of one's own on loopback, that keeps nothing on disk. */
export interface RedisServer {
  /** URL of its first database. */
  url: string;
  /** Ends it, with everything that it knew. */
  kill(): Promise<void>;
  /** Starts it again on the same port after `kill`; it knows nothing. */
  restart(): Promise<void>;
  /** Lets it answer nothing until `resume`. */
  pause(): void;
  resume(): void;
}

/**
 * A server under a shell that ends it as soon as its own input ends: with the test process, however
 * that one ends.
 */
const keeper =
  'trap "" INT TERM; directory=$1; shift; "$@" & echo "pid $!"; ' +
  'cat > /dev/null; kill -9 $! 2> /dev/null; wait $!; rm -rf "$directory"';

interface Launched {
  shell: Subprocess<"pipe", "pipe", "ignore">;
  serverPid: number;
}

/** Starts a server on a free port; it ends with this process at the latest. */
export async function startRedis(
  changes: Readonly<Record<string, string>> = {},
): Promise<RedisServer> {
  const port = freePort();
  let launched = await launch(port, changes);
  return {
    url: `redis://127.0.0.1:${port}`,
    async kill() {
      launched.shell.stdin.end();
      await launched.shell.exited;
    },
    restart: async () => void (launched = await launch(port, changes)),
    pause: () => process.kill(launched.serverPid, "SIGSTOP"),
    resume: () => process.kill(launched.serverPid, "SIGCONT"),
  };
}

async function launch(port: number, changes: Readonly<Record<string, string>>): Promise<Launched> {
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
  const command = ["sh", "-c", keeper, "redis", directory, program, ...flags];
  const shell = Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "ignore" });
  let log = "";
  const decoder = new TextDecoder();
  for await (const chunk of shell.stdout) {
    log += decoder.decode(chunk);
    const serverPid = /^pid (\d+)$/m.exec(log)?.[1];
    if (serverPid !== undefined && /ready to accept connections/i.test(log))
      return { shell, serverPid: Number(serverPid) };
  }
  throw new Error(`the Redis of the tests did not start: ${log}`);
}

let shared: Promise<RedisServer> | undefined;
let databaseCount = 0;

/** URL of an empty database on the server that the tests of one process share. */
export async function freshRedis(): Promise<string> {
  shared ??= startRedis();
  databaseCount += 1;
  return `${(await shared).url}/${databaseCount}`;
}
