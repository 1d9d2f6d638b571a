import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Client } from "pg";

/** A separate Postgres on a free port, with its data in a temporary directory. */
export interface PostgresServer {
  /** URL of its maintenance database. */
  url: string;
  /** Creates an empty database and returns its URL. */
  freshDatabase(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a separate server; it also stops when this process ends, in whichever way. */
export const startPostgres = (): Promise<PostgresServer> => launch([]);

/** Starts a streaming replica of a server; it stops as a server does. */
export const startReplicaOf = ({
  url,
}: Pick<PostgresServer, "url">): Promise<Pick<PostgresServer, "url" | "stop">> => launch([url]);

async function launch(more: readonly string[]): Promise<PostgresServer> {
  const listener = createServer({ allowHalfOpen: true });
  const port = await new Promise<number>((resolve) => {
    listener.listen(0, "127.0.0.1", () => resolve((listener.address() as AddressInfo).port));
  });
  launchInBackground([String(port), ...more]);
  const connection = await new Promise<Socket>((resolve) => listener.once("connection", resolve));
  listener.close();
  const url = await firstLine(connection);
  if (!url.startsWith("postgres:"))
    throw new Error(`the Postgres of the tests did not start: ${url}`);
  connection.unref();
  return {
    url,
    freshDatabase: () => createDatabase(url),
    stop: () =>
      new Promise((resolve) => {
        connection
          .ref()
          .once("close", () => resolve())
          .end();
      }),
  };
}

/**
 * Starts the server as a grandchild of this process. `bun test` kills the child processes of a test
 * that times out, and a killed server leaves its data behind; a grandchild survives to serve the
 * later tests.
 */
function launchInBackground(more: readonly string[]): void {
  const script = join(import.meta.dir, "postgres-server.ts");
  Bun.spawnSync(
    ["sh", "-c", '"$@" </dev/null >/dev/null &', "sh", process.execPath, script, ...more],
    { stderr: "inherit" },
  );
}

function firstLine(connection: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    connection.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
    connection.once("close", () => resolve("it ended without a word"));
  });
}

let shared: Promise<PostgresServer> | undefined;

/** Returns the server that the tests of one process share; it stops with the process. */
function sharedPostgres(): Promise<PostgresServer> {
  shared ??= startPostgres();
  return shared;
}

/** Returns the URL of an empty database on the shared server. */
export const freshDatabase = async (): Promise<string> => (await sharedPostgres()).freshDatabase();

let databaseCount = 0;

async function createDatabase(serverUrl: string): Promise<string> {
  const name = `test_${process.pid}_${++databaseCount}`;
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  return Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
}
