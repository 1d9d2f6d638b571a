import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { freePort } from "../end-to-end/process/support/ports.ts";

/** The server program of the machine: Valkey, or Redis, which speaks the same. */
const program = Bun.which("valkey-server") ?? Bun.which("redis-server");

/** Whether this machine can run one; without it the tests that need it are skipped. */
export const hasRedis = program !== null;

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

const children = new Set<Subprocess>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** Starts a server on a free port; it ends with this process at the latest. */
export async function startRedis(): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-redis-"));
  const port = freePort();
  let child = await launch(port, directory);
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  return {
    url: `redis://127.0.0.1:${port}`,
    async kill() {
      child.kill("SIGKILL");
      await child.exited;
      children.delete(child);
    },
    restart: async () => void (child = await launch(port, directory)),
    pause: () => child.kill("SIGSTOP"),
    resume: () => child.kill("SIGCONT"),
  };
}

async function launch(port: number, directory: string): Promise<Subprocess> {
  if (program === null) throw new Error("neither valkey-server nor redis-server is installed");
  const settings = { port: String(port), bind: "127.0.0.1", save: "", appendonly: "no", databases: "1024", dir: directory };
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = Bun.spawn([program, ...flags], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  children.add(child);
  let log = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    log += decoder.decode(chunk);
    if (/ready to accept connections/i.test(log)) return child;
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
