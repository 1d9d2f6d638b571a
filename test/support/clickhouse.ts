import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { freePort } from "../end-to-end/process/support/ports.ts";

const program = join(import.meta.dir, "clickhouse-server.ts");
const [user, password] = ["switchyard", "p@ss:word/?"];
const root = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;

/** A separate archive: ClickHouse's engine with its data in a temporary directory. */
export interface ClickHouseServer {
  port: number;
  /** Returns `archive.url` for a database on it. */
  urlOf(database: string): string;
  /** Runs a statement. */
  run(database: string, query: string): Promise<string>;
  /** Returns the rows of a query, without the gateway's client. */
  ask(database: string, query: string): Promise<Record<string, string>[]>;
  /**
   * Sets what happens to the answers of inserts from now on: the next one is `lost` after its
   * insert is done, or all of them are `held` for good.
   */
  insertAnswers(fate: "given" | "lost" | "held"): Promise<void>;
  /** Resolves when an insert is done whose answer was lost or is held. */
  inserted(): Promise<void>;
  /** Kills the server, as a power cut would; its data remain. */
  kill(): Promise<void>;
  /** Restarts it on the same port. */
  restart(): Promise<void>;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
}

/** Starts an archive on a free port; it stops with this process at the latest. */
export async function startClickHouse(): Promise<ClickHouseServer> {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-clickhouse-"));
  const port = freePort();
  let inserts = 0;
  let onInsert = (): void => undefined;
  const launch = () =>
    launchServer({
      directory,
      port,
      onInsert() {
        inserts += 1;
        onInsert();
      },
    });
  let child = await launch();
  const url = `http://127.0.0.1:${port}`;
  const headers = {
    authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
  };
  const run = async (database: string, query: string): Promise<string> => {
    const response = await fetch(`${url}/?database=${database}`, {
      method: "POST",
      headers,
      body: query,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text;
  };
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
  };
  return {
    port,
    urlOf: (database) => `clickhouse+http://${root}@127.0.0.1:${port}/${database}`,
    run,
    async ask(database, query) {
      const text = await run(database, `${query} format JSONEachRow`);
      return text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, string>);
    },
    async insertAnswers(fate) {
      inserts = 0;
      await fetch(`${url}/answers/${fate}`);
    },
    inserted: () =>
      new Promise((resolve) => {
        if (inserts > 0) return resolve();
        onInsert = resolve;
      }),
    kill,
    restart: async () => void (child = await launch()),
    async stop() {
      await kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Starts a server process and resolves once it listens. */
async function launchServer({
  directory,
  port,
  onInsert,
}: {
  directory: string;
  port: number;
  onInsert(): void;
}): Promise<Subprocess> {
  const child = Bun.spawn([process.execPath, program, directory, String(port), user, password], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  await new Promise<void>((resolve, reject) => {
    void (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of child.stdout) {
        const lines = decoder.decode(chunk).split("\n");
        if (lines.some((line) => line.startsWith("ready"))) resolve();
        if (lines.includes("inserted")) onInsert();
      }
      reject(new Error("ClickHouse's engine ended before it listened"));
    })();
  });
  return child;
}
