import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keepPrivate } from "./private-files.ts";

const modeOf = (path: string): number => statSync(path).mode & 0o777;

function directoryWith(files: Record<string, number>): string {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-private-"));
  for (const [name, mode] of Object.entries(files)) {
    writeFileSync(join(directory, name), "");
    chmodSync(join(directory, name), mode);
  }
  return directory;
}

test("keepPrivate removes others' access to all files of the data directory and lists them", () => {
  const directory = directoryWith({
    "switchyard.db": 0o644,
    "switchyard.db-wal": 0o666,
    "encryption.key": 0o600,
    "backup.db": 0o640,
  });
  const { tightened, left } = keepPrivate({
    dataDirectory: directory,
    databasePath: join(directory, "switchyard.db"),
  });
  expect(tightened.sort()).toEqual(
    ["backup.db", "switchyard.db", "switchyard.db-wal"].map((name) => join(directory, name)),
  );
  expect(left).toEqual([]);
  for (const name of ["switchyard.db", "switchyard.db-wal", "encryption.key", "backup.db"]) {
    expect(modeOf(join(directory, name))).toBe(0o600);
  }
});

test("keepPrivate tightens only the database's own files outside the data directory", () => {
  const others = ["other.txt", "own.db.txt"];
  const elsewhere = directoryWith({
    "own.db": 0o644,
    "own.db-shm": 0o644,
    ...Object.fromEntries(others.map((name) => [name, 0o644])),
  });
  const { tightened } = keepPrivate({
    dataDirectory: directoryWith({}),
    databasePath: join(elsewhere, "own.db"),
  });
  expect(tightened.sort()).toEqual([join(elsewhere, "own.db"), join(elsewhere, "own.db-shm")]);
  for (const name of others) expect(modeOf(join(elsewhere, name))).toBe(0o644);
  const before = modeOf(elsewhere);
  chmodSync(elsewhere, 0o755);
  expect(keepPrivate({ dataDirectory: directoryWith({}), databasePath: elsewhere })).toEqual({
    tightened: [],
    left: [],
  });
  chmodSync(elsewhere, before);
});

test("keepPrivate does not follow links, and reports a directory that others may write to", () => {
  const target = directoryWith({ "shared.txt": 0o644 });
  const directory = directoryWith({});
  symlinkSync(join(target, "shared.txt"), join(directory, "link"));
  chmodSync(directory, 0o777);
  const { tightened, left } = keepPrivate({ dataDirectory: directory, databasePath: undefined });
  expect(tightened).toEqual([]);
  expect(left).toEqual([{ path: directory, reason: expect.stringContaining("chmod go-w") }]);
  expect(modeOf(join(target, "shared.txt"))).toBe(0o644);
});

test("keepPrivate ignores a directory that does not exist", () => {
  expect(keepPrivate({ dataDirectory: "/nonexistent/data", databasePath: undefined })).toEqual({
    tightened: [],
    left: [],
  });
});
