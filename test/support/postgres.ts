import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Client } from "pg";
import { migrations } from "../../src/platform/storage/migrations/index.ts";
import { openStorage } from "../../src/platform/storage/open-storage.ts";

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

/** Names the variable with the URL of the server that `npm test` starts for all its processes. */
export const sharedServerVariable = "SWITCHYARD_TEST_POSTGRES";

/** A server that several test files use, with a database that every migration ran on. */
interface SharedServer {
  url: string;
  /** Creates the database to copy from, once. */
  template(): Promise<string>;
}

const templateName = "switchyard_migrated";

let shared: Promise<SharedServer> | undefined;

/**
 * Returns the server of all processes of `npm test`, or else that of this process, which stops with
 * it.
 */
function sharedPostgres(): Promise<SharedServer> {
  const url = process.env[sharedServerVariable];
  shared ??=
    url === undefined
      ? startSharedPostgres()
      : Promise.resolve({ url, template: async () => templateName });
  return shared;
}

/** Starts a server for several test files. It does not wait for the disk. */
export async function startSharedPostgres(): Promise<SharedServer> {
  const { url } = await launch(["--no-fsync"]);
  let template: Promise<string> | undefined;
  return { url, template: () => (template ??= createTemplate(url)) };
}

async function createTemplate(serverUrl: string): Promise<string> {
  const url = await copiedDatabase(serverUrl, { name: templateName });
  const storage = await openStorage({
    url,
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
  await storage.close();
  return templateName;
}

/** Returns the URL of an empty database on the shared server. */
export const freshDatabase = async (): Promise<string> =>
  copiedDatabase((await sharedPostgres()).url);

/** Returns the URL of a database on the shared server that has every migration, and no rows. */
export async function migratedDatabase(): Promise<string> {
  const { url, template } = await sharedPostgres();
  return copiedDatabase(url, { template: await template() });
}

/** Distinguishes the databases of this process from those of others on the same server. */
const processName = `${process.pid}_${Date.now().toString(36)}`;
let databaseCount = 0;

interface NewDatabase {
  name: string;
  template: string;
  /** What precedes the statement that creates it, and what follows in it. */
  before: string;
  strategy: string;
}

async function createDatabase(
  serverUrl: string,
  {
    name = `test_${processName}_${++databaseCount}`,
    template = "template1",
    before = "",
    strategy = "wal_log",
  }: Partial<NewDatabase> = {},
): Promise<string> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  try {
    if (before !== "") await client.query(before);
    await client.query(`create database ${name} template ${template} strategy ${strategy}`);
  } finally {
    await client.end();
  }
  return Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
}

let canClone = true;

/**
 * Creates a database on a server that does not wait for the disk, where files are copied for a
 * third of what pages in the log take. The system copies them, where it can.
 * https://www.postgresql.org/docs/18/runtime-config-resource.html#GUC-FILE-COPY-METHOD
 */
async function copiedDatabase(
  serverUrl: string,
  names: Partial<Pick<NewDatabase, "name" | "template">> = {},
): Promise<string> {
  const copied = { ...names, strategy: "file_copy" };
  if (canClone)
    try {
      return await createDatabase(serverUrl, { ...copied, before: "set file_copy_method = clone" });
    } catch {
      canClone = false;
    }
  return createDatabase(serverUrl, copied);
}
