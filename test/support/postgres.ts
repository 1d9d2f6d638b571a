import { join } from "node:path";
import { Client } from "pg";

/** A Postgres of its own, on a free port, with its data in a temporary directory. */
export interface PostgresServer {
  /** URL of its maintenance database. */
  url: string;
  /** Makes an empty database and gives its URL. */
  freshDatabase(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a server of one's own; it also ends when this process does, however that happens. */
export async function startPostgres(): Promise<PostgresServer> {
  const server = Bun.spawn([process.execPath, join(import.meta.dir, "postgres-server.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const url = await firstLine(server.stdout);
  server.unref();
  return {
    url,
    freshDatabase: () => createDatabase(url),
    stop: async () => {
      server.stdin.end();
      await server.exited;
    },
  };
}

let shared: Promise<PostgresServer> | undefined;

/** The server that the tests of one process share; it ends with the process. */
export function sharedPostgres(): Promise<PostgresServer> {
  shared ??= startPostgres();
  return shared;
}

/** URL of an empty database on the shared server. */
export const freshDatabase = async (): Promise<string> => (await sharedPostgres()).freshDatabase();

async function firstLine(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true });
    const end = text.indexOf("\n");
    if (end !== -1) return text.slice(0, end);
  }
  throw new Error("the Postgres of the tests did not start; its reason stands above");
}

let databaseCount = 0;

async function createDatabase(serverUrl: string): Promise<string> {
  const name = `test_${process.pid}_${++databaseCount}`;
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  return Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
}
