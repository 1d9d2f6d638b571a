import { chmodSync, lstatSync, readdirSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";

/** The outcome of checking files that hold secrets. */
export interface PrivacyCheck {
  /** Files that other users could read or write, and now cannot. */
  tightened: string[];
  /** Files that other users can still read or write, with the reason. */
  left: { path: string; reason: string }[];
}

/** The permission bits of the group and of all other users. */
const othersBits = 0o077;
const othersWriteBits = 0o022;
const stickyBit = 0o1000;

/**
 * Removes other users' permissions from everything in the data directory, and from the files of an
 * embedded database elsewhere. The umask of the process makes new files private; those of earlier
 * releases and restored copies may not be.
 */
export function keepPrivate({
  dataDirectory,
  databasePath,
}: {
  dataDirectory: string;
  databasePath: string | undefined;
}): PrivacyCheck {
  const check: PrivacyCheck = { tightened: [], left: [] };
  for (const path of entriesOf(dataDirectory)) tighten(path, check);
  if (databasePath !== undefined && dirname(databasePath) !== dataDirectory) {
    for (const path of sqliteFilesOf(databasePath)) tighten(path, check);
  }
  noteWriters(dataDirectory, check);
  return check;
}

/** The ends of the names of a database and of the journals beside it (sqlite.org/tempfiles.html). */
const sqliteEnds = ["", "-wal", "-shm", "-journal"];

/** Returns the paths of the files of a database that exist. */
export const sqliteFilesOf = (databasePath: string): string[] =>
  sqliteEnds
    .map((end) => `${databasePath}${end}`)
    .filter((path) => entryOf(path)?.isDirectory() === false);

/** Returns the paths in a directory; none where it does not exist yet. */
function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch {
    return [];
  }
}

function tighten(path: string, check: PrivacyCheck): void {
  try {
    const entry = lstatSync(path);
    if (entry.isSymbolicLink() || (entry.mode & othersBits) === 0) return;
    chmodSync(path, entry.mode & 0o7700);
    check.tightened.push(path);
  } catch (error) {
    check.left.push({ path, reason: error instanceof Error ? error.message : String(error) });
  }
}

/**
 * Returns what is at a path; undefined where nothing is, or a file is in the way: the code that
 * needs the directory reports that.
 */
function entryOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

/** Reports a directory that others can write to, since they could replace the database in it. */
function noteWriters(directory: string, { left }: PrivacyCheck): void {
  const entry = entryOf(directory);
  if (entry === undefined || (entry.mode & othersWriteBits) === 0 || (entry.mode & stickyBit) !== 0)
    return;
  left.push({
    path: directory,
    reason: "others than its owner may write to it; run chmod go-w on it",
  });
}
