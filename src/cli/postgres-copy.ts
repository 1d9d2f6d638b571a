import { createReadStream, createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { Client } from "pg";
import { isWithoutGateway, lockHolder } from "../platform/storage/postgres/gateway-lock.ts";
import { checkBooks, compareSchema } from "./database.ts";
import { CommandError } from "./terminal.ts";
import { textLines } from "./text-lines.ts";

const rowsAtOnce = 1_000;
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A line of a copy: a table's row in Postgres' JSON, or the position of a sequence. */
interface Line {
  kind: "row" | "sequence";
  name: string;
  /** The row in JSON, or the number. */
  text: string;
}

const lineText = ({ kind, name, text }: Line): string => `${kind}\t${name}\t${text}\n`;

/** Reads the lines of a copy. */
async function* linesIn(file: string): AsyncGenerator<Line> {
  for await (const line of textLines(createReadStream(file).pipe(createGunzip()))) {
    const [kind = "", name = ""] = line.split("\t", 2);
    yield { kind: kind as Line["kind"], name, text: line.slice(kind.length + name.length + 2) };
  }
}

async function namesOf(client: Client, query: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(query);
  return rows.map(({ name }) => name);
}

/** Returns the tables to copy. A partition's rows are those of its table. */
const tablesOf = (client: Client): Promise<string[]> =>
  namesOf(
    client,
    `select relname as name from pg_class where relnamespace = current_schema()::regnamespace
      and relkind in ('r', 'p') and not relispartition order by 1`,
  );

const lastValue =
  "select sequencename as name, last_value::text as text from pg_sequences where schemaname = current_schema() and last_value is not null";

async function* linesOf(client: Client): AsyncGenerator<string> {
  for (const name of await tablesOf(client)) {
    await client.query(
      `declare copied cursor for select row_to_json(t)::text as text from ${quoted(name)} t`,
    );
    for (;;) {
      const { rows } = await client.query<{ text: string }>(`fetch ${rowsAtOnce} from copied`);
      if (rows.length === 0) break;
      yield rows.map(({ text }) => lineText({ kind: "row", name, text })).join("");
    }
    await client.query("close copied");
  }
  const { rows } = await client.query<{ name: string; text: string }>(lastValue);
  for (const { name, text } of rows) yield lineText({ kind: "sequence", name, text });
}

async function requireWhole(client: Client, encryptionKey: Uint8Array): Promise<void> {
  const query = async (text: string) => (await client.query<Record<string, unknown>>(text)).rows;
  const { unknown } = await compareSchema(query);
  const problems = [
    ...unknown.map((name) => `a newer release wrote it: ${name}`),
    ...(await checkBooks(query, encryptionKey)),
  ];
  if (problems.length > 0) throw new CommandError(`the copy is not whole:\n${problems.join("\n")}`);
}

/** Throws where a copy lacks a migration of this release, since its rows would lack columns. */
async function requireThisRelease(file: string): Promise<void> {
  const done: { name: string }[] = [];
  for await (const { kind, name, text } of linesIn(file))
    if (kind === "row" && name === "kysely_migration")
      done.push(JSON.parse(text) as { name: string });
  const [oldest] = (await compareSchema(async () => done)).missing;
  if (oldest === undefined) return;
  throw new CommandError(
    `an older release wrote the backup, before ${oldest}: restore it with that release, then upgrade`,
  );
}

async function connect(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  await client.connect();
  return client;
}

/**
 * Copies a Postgres database as of one moment, beside gateways that write, and checks its ledger.
 */
export async function copyPostgres(
  url: string,
  { file, encryptionKey }: { file: string; encryptionKey: Uint8Array },
): Promise<void> {
  const client = await connect(url);
  try {
    await client.query("begin isolation level repeatable read read only");
    await requireWhole(client, encryptionKey);
    await pipeline(
      Readable.from(linesOf(client)),
      createGzip(),
      createWriteStream(file, { mode: 0o600 }),
    );
  } finally {
    await client.end();
  }
}

/** Returns whether a database contains tables of a gateway. */
export async function holdsTables(url: string): Promise<boolean> {
  const client = await connect(url);
  try {
    return (await tablesOf(client)).includes("kysely_migration");
  } finally {
    await client.end();
  }
}

/** Defers foreign key checks to the end, since rows come table by table. */
async function deferChecks(client: Client): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ table: string; name: string }>(
    `select conrelid::regclass::text as table, conname as name from pg_constraint
      where contype = 'f' and connamespace = current_schema()::regnamespace and not condeferrable`,
  );
  for (const { table, name } of rows)
    await client.query(
      `alter table ${table} alter constraint ${quoted(name)} deferrable initially deferred`,
    );
  return async () => {
    await client.query("set constraints all immediate");
    for (const { table, name } of rows)
      await client.query(`alter table ${table} alter constraint ${quoted(name)} not deferrable`);
  };
}

async function load(client: Client, file: string): Promise<void> {
  const waiting: { name: string; rows: string[] } = { name: "", rows: [] };
  const flush = async (): Promise<void> => {
    if (waiting.rows.length === 0) return;
    const table = quoted(waiting.name);
    await client.query(
      `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1::json)`,
      [`[${waiting.rows.join(",")}]`],
    );
    waiting.rows = [];
  };
  for await (const { kind, name, text } of linesIn(file)) {
    if (kind === "sequence") {
      await flush();
      await client.query("select setval($1::regclass, $2::bigint)", [quoted(name), text]);
      continue;
    }
    if (name !== waiting.name || waiting.rows.length >= rowsAtOnce) await flush();
    waiting.name = name;
    waiting.rows.push(text);
  }
  await flush();
}

/** Deletes what migrations and opening the database wrote; append-only tables are still empty. */
async function emptyTables(client: Client): Promise<void> {
  for (const name of await tablesOf(client)) {
    const { rowCount } = await client.query(`select 1 from ${quoted(name)} limit 1`);
    if (rowCount !== 0) await client.query(`delete from ${quoted(name)}`);
  }
}

/** The list of migrations and its lock, which the migrator looks for in every schema. */
const migratorTables = ["kysely_migration", "kysely_migration_lock"];

interface SetAside {
  schema: string;
  keptAs: string;
}

async function setAside(client: Client, { schema, keptAs }: SetAside): Promise<void> {
  if (!(await isWithoutGateway(client)))
    throw new CommandError(
      `a gateway uses the database (${await lockHolder(client)}): stop it first`,
    );
  const renames = migratorTables.map(
    (name) => `alter table ${quoted(name)} rename to kept_${name}`,
  );
  const moves = [
    `alter schema ${quoted(schema)} rename to ${quoted(keptAs)}`,
    `create schema ${quoted(schema)}`,
  ];
  await client.query([...renames, ...moves].join("; "));
}

async function putBack(client: Client, { schema, keptAs }: SetAside): Promise<void> {
  const moves = [
    `drop schema ${quoted(schema)} cascade`,
    `alter schema ${quoted(keptAs)} rename to ${quoted(schema)}`,
  ];
  const renames = migratorTables.map(
    (name) => `alter table kept_${name} rename to ${quoted(name)}`,
  );
  await client.query([...moves, ...renames].join("; "));
}

/**
 * Loads a copy into a database in which `migrate` creates the tables. Existing tables stay in a
 * schema of their own, whose name is returned. An incomplete copy leaves the database as it was.
 */
export async function loadPostgres(
  url: string,
  {
    file,
    encryptionKey,
    keptAs,
    migrate,
  }: {
    file: string;
    encryptionKey: Uint8Array;
    keptAs: string | undefined;
    migrate(): Promise<void>;
  },
): Promise<void> {
  await requireThisRelease(file);
  const client = await connect(url);
  try {
    const [schema = "public"] = await namesOf(client, "select current_schema() as name");
    if (keptAs !== undefined) await setAside(client, { schema, keptAs });
    try {
      await migrate();
      await client.query("begin");
      const restoreChecks = await deferChecks(client);
      await emptyTables(client);
      await load(client, file);
      await restoreChecks();
      await requireWhole(client, encryptionKey);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      if (keptAs !== undefined) await putBack(client, { schema, keptAs });
      throw error;
    }
  } finally {
    await client.end();
  }
}
