import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { version } from "../../package.json";
import {
  databasePathOf,
  encryptionKeyOf,
  readConfiguration,
  type Settings,
} from "../app/settings-of.ts";
import { buildStorage } from "../app/parts/build-storage.ts";
import { sqliteFilesOf } from "../platform/config/private-files.ts";
import { systemClock } from "../platform/kernel/clock.ts";
import { lockSqlite } from "../platform/storage/sqlite/open-sqlite.ts";
import { createLogger } from "../platform/telemetry/logger.ts";
import { type CommandContext, CommandError } from "./terminal.ts";
import { checkBooks, compareSchema, openSqlite } from "./database.ts";
import { copyPostgres, holdsTables, loadPostgres } from "./postgres-copy.ts";

/** The contents of a backup's `manifest.json`. */
interface Manifest {
  format: "switchyard-backup-1";
  version: string;
  created_at: string;
  engine: "sqlite" | "postgres";
  /** The SHA-256 of each file, in hexadecimal. */
  files: Record<string, string>;
}

const sqliteFile = "switchyard.db";
const postgresFile = "postgres.jsonl.gz";
const keyFile = "encryption.key";
const filesFolder = "files";

const isInBucket = ({ files }: Settings): boolean => files.url.startsWith("s3://");

/**
 * Copies the files of workspaces, which are encrypted, where they are in a directory. It comes after
 * the database, so that every file that its rows name is in the copy, unless it was deleted since.
 */
function copyFiles(settings: Settings, folder: string): void {
  const { url } = settings.files;
  if (isInBucket(settings) || !existsSync(url)) return;
  for (const entry of readdirSync(url, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) copyUnlessGone(path, join(folder, filesFolder, relative(url, path)));
  }
}

/** Copies a file with its time, unless a running gateway has deleted it since it was listed. */
export function copyUnlessGone(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  try {
    const { atime, mtime } = statSync(from);
    copyFileSync(from, to);
    utimesSync(to, atime, mtime);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || existsSync(from)) throw error;
  }
}

/** Copies the files of a backup to where files are stored. None has the name of another. */
function restoreFiles(settings: Settings, folder: string): void {
  const copied = join(folder, filesFolder);
  if (!existsSync(copied)) return;
  if (isInBucket(settings))
    throw new CommandError(
      "this backup has files, and files.url names a bucket; name a directory",
      2,
    );
  cpSync(copied, settings.files.url, { recursive: true, preserveTimestamps: true });
}

/** Bytes that are hashed at once. */
const hashedBytes = 1024 * 1024;

/** Returns the SHA-256 of a file, which may be larger than the memory. */
function hashOf(path: string): string {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(hashedBytes);
  const file = openSync(path, "r");
  try {
    for (let bytes = 1; bytes > 0; ) {
      bytes = readSync(file, buffer);
      hash.update(buffer.subarray(0, bytes));
    }
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}

/**
 * Checks the pages, schema, sums and audit log of a copied database. Throws `CommandError` that
 * says what is wrong.
 */
async function verifyCopy(path: string, encryptionKey: Uint8Array): Promise<void> {
  const { query, close } = openSqlite(path);
  try {
    const pages = (await query("pragma integrity_check"))
      .map((row) => String(row["integrity_check"]))
      .filter((text) => text !== "ok");
    const { unknown } = await compareSchema(query);
    const problems = [
      ...pages,
      ...unknown.map((name) => `a newer release wrote it: ${name}`),
      ...(await checkBooks(query, encryptionKey)),
    ];
    if (problems.length > 0)
      throw new CommandError(`the copy is not whole:\n${problems.join("\n")}`);
  } finally {
    await close();
  }
}

/**
 * Copies the database as of one moment, beside a running gateway, and the key that opens its
 * secrets.
 */
async function copySqlite(
  settings: Settings,
  { path, folder, withKey }: { path: string; folder: string; withKey: boolean },
): Promise<string[]> {
  const target = join(folder, sqliteFile);
  if (!existsSync(path)) throw new CommandError(`there is no database at ${path}`, 2);
  const database = new Database(path, { readonly: true });
  try {
    database.query("vacuum into ?").run(target);
  } finally {
    database.close();
  }
  chmodSync(target, 0o600);
  await verifyCopy(target, encryptionKeyOf(settings));
  const kept = join(settings.dataDirectory, keyFile);
  if (!withKey || !existsSync(kept)) return [sqliteFile];
  copyFileSync(kept, join(folder, keyFile));
  chmodSync(join(folder, keyFile), 0o600);
  return [sqliteFile, keyFile];
}

/**
 * Backs the database up into a new folder, with or without a running gateway, and verifies the
 * copy.
 */
export async function backup(
  context: CommandContext,
  folder: string,
  { withKey }: { withKey: boolean },
): Promise<void> {
  const settings = await readConfiguration(context);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CommandError(`${folder} is not empty; name a new folder`, 2);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = databasePathOf(settings);
  let files: string[];
  if (path === undefined) {
    await copyPostgres(settings.storage.url, {
      file: join(folder, postgresFile),
      encryptionKey: encryptionKeyOf(settings),
    });
    files = [postgresFile];
  } else {
    files = await copySqlite(settings, { path, folder, withKey });
  }
  copyFiles(settings, folder);
  const manifest: Manifest = {
    format: "switchyard-backup-1",
    version,
    created_at: new Date(systemClock.nowMs()).toISOString(),
    engine: path === undefined ? "postgres" : "sqlite",
    files: Object.fromEntries(files.map((name) => [name, hashOf(join(folder, name))])),
  };
  writeFileSync(join(folder, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`, {
    mode: 0o600,
  });
  if (context.terminal.result({ folder, ...manifest })) return;
  context.terminal.line(`Backed up to ${folder} and verified: ${files.join(", ")}.`);
  if (isInBucket(settings))
    context.terminal.line(`Files are in ${settings.files.url}; back that bucket up as well.`);
  if (!files.includes(keyFile))
    context.terminal.line(
      "The encryption key is not in it; keep SWITCHYARD_ENCRYPTION_KEY with it: no stored key works without it.",
    );
}

function readManifest(folder: string): Manifest {
  const path = join(folder, "manifest.json");
  if (!existsSync(path))
    throw new CommandError(`${folder} is no backup: it has no manifest.json`, 2);
  const manifest = JSON.parse(readFileSync(path, "utf8")) as Manifest;
  for (const [name, hash] of Object.entries(manifest.files)) {
    const file = join(folder, basename(name));
    if (!existsSync(file) || hashOf(file) !== hash)
      throw new CommandError(
        `${name} of the backup is missing or was changed; nothing was restored`,
      );
  }
  return manifest;
}

/** Creates the tables of this release in an empty database. */
async function createTables(settings: Settings): Promise<void> {
  const logger = createLogger({ level: "silent" });
  await (
    await buildStorage(
      {
        storageUrl: settings.storage.url,
        durability: settings.storage.durability,
        sharedUrl: undefined,
      },
      logger,
    )
  ).close();
}

/**
 * Restores a backup; existing data is kept beside it under another name. The gateway has to be
 * stopped.
 */
export async function restore(
  context: CommandContext,
  folder: string,
  { force }: { force: boolean },
): Promise<void> {
  const settings = await readConfiguration(context);
  const manifest = readManifest(folder);
  const path = databasePathOf(settings);
  if ((path === undefined) !== (manifest.engine === "postgres")) {
    throw new CommandError(
      `this is a backup of ${manifest.engine}, and the configuration names ${settings.storage.embedded ? "SQLite" : "Postgres"}`,
      2,
    );
  }
  const kept =
    path === undefined
      ? await restorePostgres(settings, { folder, force })
      : await restoreSqlite(settings, { path, folder, force });
  restoreFiles(settings, folder);
  if (context.terminal.result({ restored: folder, created_at: manifest.created_at, kept })) return;
  context.terminal.line(
    `Restored the backup of ${manifest.created_at} and verified it. Start the gateway with: switchyard start`,
  );
  if (kept !== undefined) context.terminal.line(`What was there before is in ${kept}.`);
}

async function restorePostgres(
  settings: Settings,
  { folder, force }: { folder: string; force: boolean },
): Promise<string | undefined> {
  const { url } = settings.storage;
  const isThere = await holdsTables(url);
  if (isThere && !force)
    throw new CommandError(
      "the database has tables of a gateway; restore over them with --force, which keeps them in a schema of another name",
      2,
    );
  const stamp = new Date(systemClock.nowMs()).toISOString().replaceAll(/\D/g, "").slice(0, 14);
  const keptAs = isThere ? `before_restore_${stamp}` : undefined;
  await loadPostgres(url, {
    file: join(folder, postgresFile),
    encryptionKey: encryptionKeyOf(settings),
    keptAs,
    migrate: () => createTables(settings),
  });
  return keptAs && `the schema ${keptAs}`;
}

async function restoreSqlite(
  settings: Settings,
  { path, folder, force }: { path: string; folder: string; force: boolean },
): Promise<string | undefined> {
  const restoredKey = join(folder, keyFile);
  const key = existsSync(restoredKey)
    ? new Uint8Array(Buffer.from(readFileSync(restoredKey, "utf8").trim(), "base64"))
    : encryptionKeyOf(settings, { mayCreate: false });
  await verifyCopy(join(folder, sqliteFile), key);
  if (existsSync(path) && !force)
    throw new CommandError(
      `there is a database at ${path}; restore over it with --force, which keeps it under another name`,
      2,
    );
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const unlock = lockSqlite(settings.storage.url, { lockTimeoutMs: 2_000 });
  try {
    const kept = replaceFiles(folder, { path, keyPath: join(settings.dataDirectory, keyFile) });
    await verifyCopy(path, key);
    return kept;
  } finally {
    unlock();
  }
}

/**
 * Copies the database and the key of a backup to their places. Returns the folder in which what was
 * there is kept, unopened: it may be damaged, or of a release that this one cannot read.
 */
function replaceFiles(
  folder: string,
  { path, keyPath }: { path: string; keyPath: string },
): string | undefined {
  const copies = (
    [
      [sqliteFile, path],
      [keyFile, keyPath],
    ] as const
  ).filter(([name]) => existsSync(join(folder, name)));
  // The copies come first: what is there stays where it is if the disk has no room for them.
  mkdirSync(dirname(keyPath), { recursive: true, mode: 0o700 });
  for (const [name, to] of copies) {
    copyFileSync(join(folder, name), `${to}.restoring`);
    chmodSync(`${to}.restoring`, 0o600);
  }
  const old = sqliteFilesOf(path);
  const aside = join(
    dirname(path),
    `before-restore-${new Date(systemClock.nowMs()).toISOString().replaceAll(/[:.]/g, "-")}`,
  );
  if (old.length > 0) {
    mkdirSync(aside, { mode: 0o700 });
    for (const each of old) renameSync(each, join(aside, basename(each)));
    // What is kept needs its key, which may be in another folder or on another disk.
    if (existsSync(join(folder, keyFile)) && existsSync(keyPath))
      copyFileSync(keyPath, join(aside, keyFile));
  }
  for (const [, to] of copies) renameSync(`${to}.restoring`, to);
  return old.length > 0 ? aside : undefined;
}
