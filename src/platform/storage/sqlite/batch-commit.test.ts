import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AddStatement,
  type CommitStatements,
  createUnitPacker,
  type InsertStatement,
  type PackedUnit,
} from "../commit-queue.ts";
import { BatchCommit, foldWhatIsLeft } from "./batch-commit.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-deferred-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const visit: InsertStatement = { name: "visit", table: "visits", columns: ["id", "page"] };
const pages: AddStatement = {
  name: "pages",
  table: "pages",
  keyColumns: ["page"],
  sumColumns: ["visits", "bytes"],
};
const statements: CommitStatements = { inserts: [visit], adds: [pages] };
const pack = createUnitPacker(statements);

const unit = (id: string, bytes = 1): PackedUnit =>
  pack({
    inserts: [{ statement: visit, values: [id, "p"] }],
    adds: [{ statement: pages, key: ["p"], sums: [1, bytes] }],
  });

let databaseCount = 0;

/**
 * A database, opened as the thread that writes opens it; a path that was opened before is what a
 * crash left.
 */
function open(path = join(root, `${++databaseCount}.db`), known = statements) {
  const database = new Database(path, { create: true, safeIntegers: true, strict: true });
  database.run("PRAGMA journal_mode = WAL");
  database.run(
    "CREATE TABLE IF NOT EXISTS visits (id text primary key, page text not null) STRICT",
  );
  database.run(
    "CREATE TABLE IF NOT EXISTS pages (page text primary key, visits integer, bytes integer) STRICT",
  );
  foldWhatIsLeft(database);
  const commit = new BatchCommit({ database, statements: known });
  const write = (...units: PackedUnit[]) => commit.apply(units);
  return { path, database, commit, write };
}

/** Ends the connection as a crash does: what is not committed is gone. */
function crash({ database }: Pick<ReturnType<typeof open>, "database">): void {
  if (database.inTransaction) database.run("ROLLBACK");
  database.close();
}

/** What other connections see. */
function shown(path: string): { ids: unknown[]; pages: unknown[] } {
  const database = new Database(path, { readonly: true, safeIntegers: true });
  const ids = database.query("SELECT id FROM visits ORDER BY id").values().flat();
  const rows = database.query("SELECT * FROM pages").values();
  database.close();
  return { ids, pages: rows };
}

describe("a commit and its fold", () => {
  test("shows rows at once, and sums after the fold, with later commits included", () => {
    const { path, commit, write } = open();
    write(unit("a", 10), unit("b", 5));
    write(unit("c"));
    expect(shown(path)).toEqual({ ids: ["a", "b", "c"], pages: [] });
    expect(commit.isFolded).toBe(false);
    commit.fold();
    expect(shown(path)).toEqual({ ids: ["a", "b", "c"], pages: [["p", 3n, 16n]] });
    expect(commit.isFolded).toBe(true);
  });

  test("survives a crash exactly once, with exact sums", () => {
    const opened = open();
    const largest = Number.MAX_SAFE_INTEGER;
    opened.write(unit("a", largest), unit("b", largest));
    opened.write(unit("c", largest));
    crash(opened);
    for (const _ of [1, 2]) {
      const again = open(opened.path);
      expect(shown(opened.path)).toEqual({
        ids: ["a", "b", "c"],
        pages: [["p", 3n, 3n * BigInt(largest)]],
      });
      crash(again);
    }
  });

  test("does not fold again after a crash", () => {
    const opened = open();
    opened.write(unit("a"));
    opened.commit.fold();
    opened.write(unit("b"));
    crash(opened);
    crash(open(opened.path));
    expect(shown(opened.path)).toEqual({ ids: ["a", "b"], pages: [["p", 2n, 2n]] });
  });

  test("leaves the sums unchanged after a crash during the fold, and folds once", () => {
    const opened = open();
    const { database, path } = opened;
    opened.write(unit("a", 7));
    database.run("BEGIN IMMEDIATE");
    database.run("INSERT INTO pages VALUES ('p', 1, 7)");
    database.run("DELETE FROM commit_growths");
    crash(opened);
    expect(shown(path)).toEqual({ ids: ["a"], pages: [] });
    crash(open(path));
    expect(shown(path)).toEqual({ ids: ["a"], pages: [["p", 1n, 7n]] });
  });

  test("is folded with the statements it was written with, after an upgrade", () => {
    const opened = open();
    opened.write(unit("a"));
    crash(opened);
    const other: AddStatement = {
      name: "other",
      table: "pages",
      keyColumns: ["page"],
      sumColumns: ["visits"],
    };
    crash(open(opened.path, { inserts: [{ ...visit, columns: ["page", "id"] }], adds: [other] }));
    expect(shown(opened.path)).toEqual({ ids: ["a"], pages: [["p", 1n, 1n]] });
  });

  test("fails the start if it cannot be folded, and keeps the growth", () => {
    const opened = open();
    opened.write(unit("a"));
    const { database, path } = opened;
    database.run("ALTER TABLE pages RENAME COLUMN bytes TO other");
    crash(opened);
    expect(() => open(path)).toThrow(/sums that the last run left behind .*bytes/);
    const repaired = new Database(path);
    repaired.run("ALTER TABLE pages RENAME COLUMN other TO bytes");
    repaired.close();
    crash(open(path));
    expect(shown(path)).toEqual({ ids: ["a"], pages: [["p", 1n, 1n]] });
  });

  test("refuses only the units that violate a constraint", () => {
    const { path, commit, write } = open();
    expect(write(unit("a"), unit("b"))).toEqual([]);
    const refusals = write(unit("c"), unit("a"), unit("d"), unit("b"), unit("c"));
    expect(refusals.map(([index]) => index)).toEqual([1, 3, 4]);
    expect(refusals.every(([, , code]) => code.startsWith("SQLITE_CONSTRAINT"))).toBe(true);
    commit.fold();
    expect(shown(path)).toEqual({ ids: ["a", "b", "c", "d"], pages: [["p", 4n, 4n]] });
  });

  test("does not count refused units after a crash", () => {
    const opened = open();
    opened.write(unit("a", 1), unit("a", 100));
    opened.write(unit("a", 100));
    crash(opened);
    crash(open(opened.path));
    expect(shown(opened.path)).toEqual({ ids: ["a"], pages: [["p", 1n, 1n]] });
  });

  test("keeps growth that fails to fold, and folds it later", () => {
    const { database, path, commit, write } = open();
    write(unit("a"));
    commit.fold();
    database.run("ALTER TABLE pages RENAME TO elsewhere");
    write(unit("b"));
    expect(() => commit.fold()).toThrow("pages");
    expect(commit.isFolded).toBe(false);
    expect(write(unit("b")).map(([, , code]) => code)).toEqual(["SQLITE_CONSTRAINT_PRIMARYKEY"]);
    expect(write(unit("c"))).toEqual([]);
    database.run("ALTER TABLE elsewhere RENAME TO pages");
    commit.fold();
    expect(shown(path)).toEqual({ ids: ["a", "b", "c"], pages: [["p", 3n, 3n]] });
  });

  test("is due for a fold at 512 sums", () => {
    const { commit, write } = open();
    const visited = (count: number): PackedUnit =>
      pack({
        inserts: [],
        adds: [{ statement: pages, key: [`page ${count}`], sums: [1, 1] }],
      });
    for (let count = 1; count < 512; count += 1) write(visited(count), visited(1));
    expect(commit.isDue).toBe(false);
    write(visited(512));
    expect(commit.isDue).toBe(true);
  });
});
