import { Database } from "bun:sqlite";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { type PostgresServer, startPostgres } from "../../../support/postgres.ts";
import { temporaryDirectory, type GatewayProcess } from "../../../support/process.ts";
import { queryDatabase } from "./query-database.ts";
import type { OpenedStore } from "./stores.ts";

/** A way in which a database takes no commits while it answers. */
export interface CommitFault {
  engine: "SQLite" | "Postgres";
  name: string;
  /** A test write does not meet it, so that requests have to find out. */
  hidden?: true;
  begin(place: string, gateway: GatewayProcess): Promise<() => Promise<void>>;
}

/**
 * Lets no file of a process grow past so many bytes, as a disk that is full (EFBIG in place of
 * ENOSPC), or with 0 as one that was mounted read-only. Works without the rights that mounting
 * needs; the process has to ignore SIGXFSZ.
 */
async function limitFiles({ child }: GatewayProcess, bytes: number): Promise<() => Promise<void>> {
  const limit = (soft: string) =>
    Bun.spawnSync(["prlimit", "--pid", String(child.pid), `--fsize=${soft}:`]);
  const { exitCode, stderr } = limit(String(bytes));
  if (exitCode !== 0) throw new Error(`prlimit failed: ${stderr.toString()}`);
  return async () => void limit("unlimited");
}

const largestFileIn = (directory: string): number =>
  Math.max(
    ...readdirSync(directory)
      .filter((name) => name.startsWith("switchyard.db"))
      .map((name) => statSync(join(directory, name)).size),
  );

async function lockSqlite(path: string): Promise<() => Promise<void>> {
  const database = new Database(path);
  database.run("pragma busy_timeout = 5000");
  database.run("begin immediate");
  return async () => {
    database.run("rollback");
    database.close();
  };
}

/** Runs statements beside a gateway that writes all the while. */
async function runBeside(place: string, text: string): Promise<void> {
  if (place.startsWith("postgres:")) return void (await queryDatabase(place, text));
  using database = new Database(place);
  database.run("pragma busy_timeout = 5000");
  database.run(text);
}

/** Runs a statement as another process of SQLite or as the superuser of Postgres. */
const statements =
  (begin: string, end: string) =>
  async (place: string): Promise<() => Promise<void>> => {
    await runBeside(place, begin);
    return () => runBeside(place, end);
  };

async function lockPostgres(place: string): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: place });
  await client.connect();
  await client.query("begin; lock table transfers in exclusive mode");
  return () => client.end();
}

const noMoreRoom = `create function no_room() returns trigger language plpgsql as $$ begin
  raise exception 'could not extend file "base/1/2": No space left on device' using errcode = '53100'; end $$;
  create trigger no_room before insert on transfers for each row execute function no_room()`;

async function setReadOnly(place: string): Promise<() => Promise<void>> {
  const set = async (change: string): Promise<void> => {
    const client = new Client({
      connectionString: place,
      options: "-c default_transaction_read_only=off",
    });
    await client.connect();
    await client.query(`alter system ${change}`);
    await client.query("select pg_reload_conf()");
    await client.end();
  };
  await set("set default_transaction_read_only = on");
  return () => set("reset default_transaction_read_only");
}

/** Every fault on both engines. */
export const commitFaults: readonly CommitFault[] = [
  { engine: "SQLite", name: "read-only", begin: (_, gateway) => limitFiles(gateway, 0) },
  {
    engine: "SQLite",
    name: "a full disk",
    begin: (_, gateway) => limitFiles(gateway, largestFileIn(gateway.dataDirectory)),
  },
  {
    engine: "SQLite",
    name: "no right to write",
    hidden: true,
    begin: statements(
      "create trigger refuse before insert on transfers begin select raise(abort, 'not authorized'); end",
      "drop trigger refuse",
    ),
  },
  { engine: "SQLite", name: "a locked table", begin: lockSqlite },
  { engine: "Postgres", name: "read-only", begin: setReadOnly },
  {
    engine: "Postgres",
    name: "a full disk",
    hidden: true,
    begin: statements(noMoreRoom, "drop trigger no_room on transfers; drop function no_room"),
  },
  {
    engine: "Postgres",
    name: "revoked privileges",
    begin: statements(
      "revoke insert on all tables in schema public from gateway",
      "grant insert on all tables in schema public to gateway",
    ),
  },
  { engine: "Postgres", name: "a locked table", begin: lockPostgres },
];

/** A store whose gateway is not its superuser, with a way to it from outside. */
export interface FaultyStore extends OpenedStore {
  place: string;
  stop(): Promise<void>;
}

/** An empty database for one of the faults. */
export async function openFaultyStore(engine: CommitFault["engine"]): Promise<FaultyStore> {
  if (engine === "Postgres") return openPostgresStore(await startPostgres());
  const dataDirectory = temporaryDirectory();
  const place = join(dataDirectory, "switchyard.db");
  return {
    place,
    options: { dataDirectory },
    query: (text) => queryDatabase(place, text),
    stop: async () => undefined,
  };
}

async function openPostgresStore(server: PostgresServer): Promise<FaultyStore> {
  const place = await server.freshDatabase();
  await queryDatabase(
    place,
    `create role gateway login; alter database ${new URL(place).pathname.slice(1)} owner to gateway`,
  );
  const url = Object.assign(new URL(place), { username: "gateway" }).href;
  const environment = {
    DATABASE_URL: url,
    SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
  };
  return {
    place,
    options: { environment },
    query: (text) => queryDatabase(place, text),
    stop: () => server.stop(),
  };
}
