import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { AddStatement } from "../commit-queue.ts";
import { mergeUnits } from "../merge-units.ts";
import { createUnitPacker } from "../packed-unit.ts";
import { DeferredAdds } from "./deferred-adds.ts";

const visits: AddStatement = { name: "visits", table: "visits", keyColumns: ["page"], sumColumns: ["count", "bytes"] };
const pack = createUnitPacker({ inserts: [], adds: [visits] });

function openDatabase(): Database {
  const database = new Database(":memory:", { safeIntegers: true, strict: true });
  database.run("PRAGMA synchronous = FULL");
  database.run("CREATE TABLE visits (page text primary key, count integer, bytes integer) STRICT");
  return database;
}

/** Notes one batch as a commit does. */
function note(deferred: DeferredAdds, ...growth: [page: string, count: number, bytes: number][]): void {
  const merged = mergeUnits(growth.map(([page, ...sums]) => pack({ inserts: [], adds: [{ statement: visits, key: [page], sums }] })));
  deferred.note(merged);
  deferred.accept(merged);
}

const rowsOf = (database: Database): unknown[] => database.query("SELECT * FROM visits ORDER BY page").values();
const notesOf = (database: Database): unknown => database.query("SELECT count(*) FROM noted_adds").values()[0]?.[0];

describe("growth of counters that is noted first", () => {
  test("batches are noted, and added up when they are worked off", () => {
    const database = openDatabase();
    const deferred = new DeferredAdds(database, [visits]);
    note(deferred, ["a", 1, 10], ["b", 1, 5], ["a", 1, 7]);
    note(deferred, ["a", 2, 1]);
    expect(rowsOf(database)).toEqual([]);
    expect(notesOf(database)).toBe(2n);
    deferred.workOff();
    expect(rowsOf(database)).toEqual([["a", 4n, 18n], ["b", 1n, 5n]]);
    expect(notesOf(database)).toBe(0n);
    expect(deferred.isEmpty).toBe(true);
  });

  test("what a process left behind is worked off when the database is opened, to the last digit", () => {
    const database = openDatabase();
    const large = Number.MAX_SAFE_INTEGER;
    note(new DeferredAdds(database, [visits]), ["a", 1, large], ["a", 1, large], ["a", 1, large]);
    expect(rowsOf(database)).toEqual([]);
    const other: AddStatement = { name: "other", table: "visits", keyColumns: ["page"], sumColumns: ["count"] };
    new DeferredAdds(database, [other, visits]);
    expect(rowsOf(database)).toEqual([["a", 3n, 3n * BigInt(large)]]);
    new DeferredAdds(database, [other, visits]);
    expect(rowsOf(database)).toEqual([["a", 3n, 3n * BigInt(large)]]);
  });

  test("growth of a counter that is not known is not thrown away", () => {
    const database = openDatabase();
    note(new DeferredAdds(database, [visits]), ["a", 1, 1]);
    expect(() => new DeferredAdds(database, [])).toThrow('growth of a counter "visits"');
    expect(notesOf(database)).toBe(1n);
  });

  test("what the engine refuses stays noted", () => {
    const database = openDatabase();
    const deferred = new DeferredAdds(database, [visits]);
    note(deferred, ["a", 1, 1]);
    database.run("ALTER TABLE visits RENAME TO elsewhere");
    expect(() => deferred.workOff()).toThrow("visits");
    database.run("ALTER TABLE elsewhere RENAME TO visits");
    expect([deferred.isEmpty, notesOf(database)]).toEqual([false, 1n]);
    deferred.workOff();
    expect(rowsOf(database)).toEqual([["a", 1n, 1n]]);
  });

  test("working off waits for no disk, and batches do again after it", () => {
    const database = openDatabase();
    const deferred = new DeferredAdds(database, [visits]);
    note(deferred, ["a", 1, 1]);
    deferred.workOff();
    expect(database.query("PRAGMA synchronous").values()).toEqual([[2n]]);
  });

  test("after 32 batches they are due", () => {
    const deferred = new DeferredAdds(openDatabase(), [visits]);
    for (let batch = 1; batch < 32; batch += 1) note(deferred, ["a", 1, 1]);
    expect(deferred.isDue).toBe(false);
    note(deferred, ["a", 1, 1]);
    expect(deferred.isDue).toBe(true);
  });
});
