import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AddStatement, InsertStatement } from "../commit-queue.ts";
import { createUnitPacker, type CommitStatements, type PackedUnit } from "../packed-unit.ts";
import { applyBatch } from "./batch-applier.ts";
import { CommitJournal, journalPath } from "./commit-journal.ts";
import { DeferredCommit } from "./deferred-commit.ts";
import { beginJournal, commitWhatIsLeft } from "./left-commits.ts";

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

/** A database, opened as the thread that writes opens it; a path that was opened before is what a crash left. */
function open(path = join(root, `${++databaseCount}.db`), known = statements) {
  const database = new Database(path, { create: true, safeIntegers: true, strict: true });
  database.run("PRAGMA journal_mode = WAL");
  database.run(
    "CREATE TABLE IF NOT EXISTS visits (id text primary key, page text not null) STRICT",
  );
  database.run(
    "CREATE TABLE IF NOT EXISTS pages (page text primary key, visits integer, bytes integer) STRICT",
  );
  const journal = new CommitJournal(journalPath(path), { reachesDisk: false });
  commitWhatIsLeft(database, journal);
  beginJournal({ database, journal, statements: known });
  const commit = new DeferredCommit({ database, journal, statements: known });
  const write = (...units: PackedUnit[]) => applyBatch(commit, units, JSON.stringify(units));
  return { path, database, journal, commit, write };
}

/** Ends the connection as a crash does: what is not committed is gone. */
function crash({ database, journal }: Pick<ReturnType<typeof open>, "database" | "journal">): void {
  if (database.inTransaction) database.run("ROLLBACK");
  database.close();
  journal.close();
}

/** What other connections see. */
function shown(path: string): { ids: unknown[]; pages: unknown[] } {
  const database = new Database(path, { readonly: true, safeIntegers: true });
  const ids = database.query("SELECT id FROM visits ORDER BY id").values().flat();
  const rows = database.query("SELECT * FROM pages").values();
  database.close();
  return { ids, pages: rows };
}

describe("a commit that waits for others", () => {
  test("is shown when it is worked off, with those that came meanwhile", () => {
    const { path, commit, write } = open();
    write(unit("a", 10), unit("b", 5));
    write(unit("c"));
    expect(shown(path)).toEqual({ ids: [], pages: [] });
    commit.workOff();
    expect(shown(path)).toEqual({ ids: ["a", "b", "c"], pages: [["p", 3n, 16n]] });
    expect(commit.isEmpty).toBe(true);
  });

  test("stands once after a crash, to the last digit of its sums", () => {
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

  test("what was worked off before a crash is not taken again", () => {
    const opened = open();
    opened.write(unit("a"));
    opened.commit.workOff();
    opened.write(unit("b"));
    crash(opened);
    crash(open(opened.path));
    expect(shown(opened.path)).toEqual({ ids: ["a", "b"], pages: [["p", 2n, 2n]] });
  });

  test("is read by the statements it was written with, whatever the next version has", () => {
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

  test("what cannot be taken over fails the start, and stays where it is", () => {
    const opened = open();
    opened.write(unit("a"));
    const { database, path } = opened;
    database.run("ROLLBACK");
    database.run("INSERT INTO visits VALUES ('a', 'by hand')");
    crash(opened);
    expect(() => open(path)).toThrow(
      /commits that the last run wrote down .*UNIQUE constraint failed/,
    );
    const repaired = new Database(path);
    repaired.run("DELETE FROM visits");
    repaired.close();
    crash(open(path));
    expect(shown(path).ids).toEqual(["a"]);
  });

  test("a journal of another database is not taken for this one's", () => {
    const [mine, other] = [open(), open()];
    other.write(unit("a"));
    crash(mine);
    const journal = new CommitJournal(journalPath(other.path), { reachesDisk: false });
    const database = new Database(mine.path, { safeIntegers: true, strict: true });
    commitWhatIsLeft(database, journal);
    expect(shown(mine.path).ids).toEqual([]);
    crash({ database, journal });
  });

  test("is refused where the database refuses it, and takes none with it, before it or beside it", () => {
    const { path, commit, write } = open();
    expect(write(unit("a"), unit("b"))).toEqual([]);
    const refusals = write(unit("c"), unit("a"), unit("d"), unit("b"), unit("c"));
    expect(refusals.map(([index]) => index)).toEqual([1, 3, 4]);
    expect(refusals.every(([, , code]) => code.startsWith("SQLITE_CONSTRAINT"))).toBe(true);
    commit.workOff();
    expect(shown(path)).toEqual({ ids: ["a", "b", "c", "d"], pages: [["p", 4n, 4n]] });
  });

  test("the refusal outlives a crash", () => {
    const opened = open();
    opened.write(unit("a", 1), unit("a", 100));
    opened.write(unit("a", 100));
    crash(opened);
    crash(open(opened.path));
    expect(shown(opened.path)).toEqual({ ids: ["a"], pages: [["p", 1n, 1n]] });
  });

  test("what the engine will not commit stays, and is committed later", () => {
    const opened = open();
    const { database, path, commit, write } = opened;
    write(unit("a"));
    commit.workOff();
    database.run("ALTER TABLE pages RENAME TO elsewhere");
    write(unit("b"));
    expect(() => commit.workOff()).toThrow("pages");
    expect(commit.isEmpty).toBe(false);
    expect(write(unit("b")).map(([, , code]) => code)).toEqual(["SQLITE_CONSTRAINT_PRIMARYKEY"]);
    expect(write(unit("c"))).toEqual([]);
    database.run("ALTER TABLE elsewhere RENAME TO pages");
    commit.workOff();
    expect(shown(path)).toEqual({ ids: ["a", "b", "c"], pages: [["p", 3n, 3n]] });
  });

  test("a batch that cannot be written down is refused, and what may stand of it counts no more", () => {
    const opened = open();
    const { journal, path, write } = opened;
    write(unit("a"));
    const append = journal.append.bind(journal);
    journal.append = (json) => {
      append(json);
      throw Object.assign(new Error("i/o error"), { code: "EIO" });
    };
    expect(write(unit("b"), unit("c"))).toEqual([
      [0, "i/o error", "EIO"],
      [1, "i/o error", "EIO"],
    ]);
    journal.append = append;
    crash(opened);
    const again = open(path);
    expect(shown(path).ids).toEqual(["a"]);
    expect(again.write(unit("b"))).toEqual([]);
  });

  test("a large batch, or one that the journal has no room for, is committed at once with all before it", () => {
    const { path, commit, write } = open();
    write(unit("a"));
    write(...Array.from({ length: 32 }, (_, index) => unit(`b${index}`)));
    expect(shown(path).ids).toHaveLength(33);
    write(unit("c"));
    write(unit(`d${"x".repeat(300_000)}`));
    expect(shown(path).ids).toHaveLength(35);
    expect(commit.isEmpty).toBe(true);
  });

  test("with 64 units it is due", () => {
    const { commit, write } = open();
    for (let count = 1; count < 64; count += 1) write(unit(`a${count}`));
    expect(commit.isDue).toBe(false);
    write(unit("last"));
    expect(commit.isDue).toBe(true);
  });
});
