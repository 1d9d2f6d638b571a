import { type Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { assert } from "../kernel/assert.ts";
import { countText } from "../kernel/count-text.ts";
import { SchemaMismatchError } from "./storage-error.ts";
import type { StorageKind, Migration } from "./storage.ts";

/** The database to migrate, and the migrations of this release in order. */
export interface MigrateOptions {
  database: Kysely<unknown>;
  /** What reads which migrations were run, such as a connection that is open already. */
  examined?: Kysely<unknown>;
  kind: StorageKind;
  migrations: readonly Migration[];
  /** Whether missing migrations are run; where false, a database that lacks one is refused. */
  mayMigrate: boolean;
}

/**
 * Runs the missing migrations, all in one transaction and under the engine's lock. Throws
 * `SchemaMismatchError` when the database has a migration that this release does not know and that
 * is not additive to its own newest, and where migrations are missing that may not be run.
 */
export async function migrate({
  database,
  examined = database,
  kind,
  migrations,
  mayMigrate,
}: MigrateOptions): Promise<void> {
  requireOrder(migrations);
  const done = await namesOfDone(examined, kind);
  refuseNewerSchema(done, migrations);
  // Nearly every start ends here; the migrator would examine every table first, several times.
  const missing = migrations.filter(({ name }) => !done.includes(name));
  if (missing.length === 0) return;
  if (!mayMigrate) throw new SchemaMismatchError(notMigrated(missing.length));
  const byName = Object.fromEntries(
    migrations.map(({ name, up }) => [
      name,
      { up: (transaction: Kysely<unknown>) => up(transaction, kind) },
    ]),
  );
  const migrator = new Migrator({
    db: database,
    provider: { getMigrations: async () => byName },
    // Branches add migrations of one day, each where its name stands.
    allowUnorderedMigrations: true,
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find(({ status }) => status === "Error")?.migrationName ?? "(none)";
  const reason = error instanceof Error ? error.message : String(error);
  throw new SchemaMismatchError(
    `the migration ${failed} failed and nothing was changed: ${reason}`,
    { cause: error },
  );
}

const notMigrated = (count: number): string =>
  `the database lacks ${countText(count, "migration")} of this release, and this process may not run them (--no-migrate): ` +
  "run `npm run migrate` first";

function requireOrder(migrations: readonly Migration[]): void {
  migrations.forEach(({ name }, index) => {
    const previous = migrations[index - 1];
    assert(
      !previous || previous.name < name,
      `migration ${name} has to come before ${previous?.name}`,
    );
  });
}

/** Returns the migrations that were run on this database, sorted by name; none on a new one. */
async function namesOfDone(database: Kysely<unknown>, kind: StorageKind): Promise<string[]> {
  const {
    rows: [table],
  } = await (kind === "sqlite"
    ? sql<{
        name: string;
      }>`select name from sqlite_master where type = 'table' and name = 'kysely_migration'`
    : sql<{ name: string | null }>`select to_regclass('kysely_migration')::text as name`
  ).execute(database);
  if (!table?.name) return [];
  const { rows } = await sql<{
    name: string;
  }>`select name from kysely_migration order by name`.execute(database);
  return rows.map(({ name }) => name);
}

/** Splits a migration's name from that of the migration that it is additive to. */
function namePartsOf(fullName: string): { name: string; additiveTo: string | undefined } {
  const [name = "", additiveTo] = fullName.split(" additive to ");
  return { name, additiveTo };
}

function refuseNewerSchema(done: readonly string[], migrations: readonly Migration[]): void {
  const known = new Set(migrations.map(({ name }) => name));
  const newest = namePartsOf(migrations.at(-1)?.name ?? "").name;
  const unknown = done.filter(
    (name) => !known.has(name) && namePartsOf(name).additiveTo !== newest,
  );
  if (unknown.length === 0) return;
  const [oldest = ""] = done;
  const [first = ""] = known;
  if (oldest < first)
    throw new SchemaMismatchError(
      `the database has an older first schema (${oldest}) than this release upgrades (${first}): start the release that wrote it, ` +
        "or start this one with an empty database",
    );
  throw new SchemaMismatchError(
    `the database was written by a newer release (${namePartsOf(unknown.at(-1) ?? "").name}): ` +
      "start that release, or restore a backup made before it",
  );
}
