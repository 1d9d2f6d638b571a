import { afterAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { commitQueueSuite } from "../../../../test/support/commit-queue-suite.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { pollUntil } from "../../../../test/support/poll-until.ts";
import { rawSumsSuite } from "../../../../test/support/raw-sums-suite.ts";
import {
  entryUnit,
  noteInsert,
  sampleOptions,
  type SampleSchema,
} from "../../../../test/support/sample-commits.ts";
import type { PackedUnit } from "../commit-queue.ts";
import { openStorage } from "../open-storage.ts";
import type { Storage } from "../storage.ts";
import { StorageInUseError, StorageUnavailableError } from "../storage-error.ts";
import { shrinkFile } from "./open-sqlite.ts";
import { newWriterTurn, SqliteBatchWriter } from "./sqlite-batch-writer.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-sqlite-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let databaseCount = 0;
const freshPath = () => join(root, `${++databaseCount}.db`);
const open = (path: string) =>
  openStorage<SampleSchema>({ ...sampleOptions, url: `sqlite:${path}`, lockTimeoutMs: 0 });

commitQueueSuite("SQLite", async () => `sqlite:${freshPath()}`);
rawSumsSuite("SQLite", async () => `sqlite:${freshPath()}`);

const fail = (message: string): never => {
  throw new Error(message);
};

describe("the SQLite database", () => {
  const pragma = async (storage: Storage<SampleSchema>, name: string) => {
    const { rows } = await storage.database
      .transaction()
      .execute((transaction) =>
        sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(transaction),
      );
    return Object.values(rows[0] ?? {})[0];
  };

  test.each([
    ["power", 2],
    ["process", 1],
  ] as const)(
    "with durability %s sets synchronous to %i, in WAL mode",
    async (durability, synchronous) => {
      const storage = await openStorage<SampleSchema>({
        ...sampleOptions,
        url: `sqlite:${freshPath()}`,
        durability,
      });
      expect(await pragma(storage, "synchronous")).toBe(synchronous);
      expect(await pragma(storage, "journal_mode")).toBe("wal");
      expect(await pragma(storage, "foreign_keys")).toBe(1);
      await storage.close();
    },
  );

  test("can be written by others right after it is closed", async () => {
    const path = freshPath();
    for (let round = 0; round < 10; round++) {
      const storage = await open(path);
      await storage.database.selectFrom("notes").selectAll().execute();
      await storage.close();
      using others = new Database(path);
      others.run("DELETE FROM notes");
    }
  });

  test("serves reads during a write transaction, without its changes", async () => {
    const storage = await open(freshPath());
    await storage.database.transaction().execute(async (transaction) => {
      await transaction.insertInto("notes").values({ id: "a", text: null, weight: null }).execute();
      expect(await storage.database.selectFrom("notes").selectAll().execute()).toEqual([]);
      expect(await transaction.selectFrom("notes").select("id").execute()).toEqual([{ id: "a" }]);
    });
    expect(await storage.database.selectFrom("notes").select("id").execute()).toEqual([
      { id: "a" },
    ]);
    await storage.close();
  });

  test("rolls back a transaction that holds the writer too long, and continues the commits", async () => {
    const storage = await openStorage<SampleSchema>({
      ...sampleOptions,
      url: `sqlite:${freshPath()}`,
      commitTimeoutMs: 100,
      clock: new FakeClock(),
    });
    const begun = Promise.withResolvers<void>();
    const committed = Promise.withResolvers<void>();
    const stuck = storage.database.transaction().execute(async (transaction) => {
      begun.resolve();
      await transaction.insertInto("notes").values({ id: "a", text: null, weight: null }).execute();
      await committed.promise;
      await transaction.insertInto("notes").values({ id: "b", text: null, weight: null }).execute();
    });
    const refusal = stuck.catch((error: unknown) => error);
    await begun.promise;
    await storage.commits.commit(entryUnit("a", 1));
    committed.resolve();
    expect(await refusal).toBeInstanceOf(StorageUnavailableError);
    expect(await storage.database.selectFrom("notes").selectAll().execute()).toEqual([]);
    await storage.close();
  });

  test("returns the space of deleted rows, except for the pages to keep", async () => {
    const path = freshPath();
    const storage = await open(path);
    const texts = Array.from({ length: 60 }, (_, index) => ({
      inserts: [{ statement: noteInsert, values: [`n${index}`, "x".repeat(100_000), 1] }],
      adds: [],
    }));
    await Promise.all(texts.map((unit) => storage.commits.commit(unit)));
    const pages = () => pragma(storage, "page_count").then(Number);
    const full = await pages();
    await storage.database.deleteFrom("notes").execute();
    expect(await pages()).toBe(full);
    await shrinkFile(storage.database, { keptPages: 100, stepPages: 64 });
    const free = Number(await pragma(storage, "freelist_count"));
    expect(free).toBe(100);
    expect(await pages()).toBeLessThan(full - 1_000);
    await storage.close();
    expect(statSync(path).size).toBeLessThan((full - 1_000) * 4_096);
  });

  test("reports a full disk differently from a refused unit, and stores nothing", async () => {
    const clock = new FakeClock();
    const url = `sqlite:${freshPath()}`;
    const storage = await openStorage<SampleSchema>({ ...sampleOptions, url, clock });
    await pragma(storage, "max_page_count = 20");
    const large = {
      inserts: [{ statement: noteInsert, values: ["a", "x".repeat(200_000), 1] }],
      adds: entryUnit("a", 1).adds,
    };
    const refused = Promise.allSettled([
      storage.commits.commit(large),
      storage.commits.commit(entryUnit("b", 1)),
    ]);
    // Both are sent again and again until their time is over.
    await pollUntil(() => !storage.commits.admits());
    clock.advance(6_000);
    const outcomes = await refused;
    expect(
      outcomes.map(
        (outcome) =>
          outcome.status === "rejected" && outcome.reason instanceof StorageUnavailableError,
      ),
    ).toEqual([true, true]);
    await pragma(storage, "max_page_count = 1000000");
    await storage.commits.commit(entryUnit("c", 1));
    expect(await storage.database.selectFrom("totals").select("entries").execute()).toEqual([
      { entries: 1 },
    ]);
    await storage.close();
  });

  test("refuses a batch that cannot be written as text, such as one of gigabytes", async () => {
    const parts = { writer: {}, turn: newWriterTurn() };
    const batches = new SqliteBatchWriter(
      parts as unknown as ConstructorParameters<typeof SqliteBatchWriter>[0],
    );
    const unit: unknown = { toJSON: () => fail("too long") };
    const writing = batches.write([unit as PackedUnit]);
    expect(String(await writing.catch((reason: unknown) => reason))).toBe("Error: too long");
  });

  test("serves more statements than its cache holds", async () => {
    const storage = await open(freshPath());
    for (let width = 1; width <= 300; width++) {
      const ids = Array.from({ length: width }, (_, index) => `id-${index}`);
      expect(
        await storage.database.selectFrom("notes").select("id").where("id", "in", ids).execute(),
      ).toEqual([]);
    }
    await storage.close();
  });

  test("refuses a second gateway on the same file, under any path", async () => {
    const path = freshPath();
    const first = await open(path);
    const alias = freshPath();
    symlinkSync(path, alias);
    for (const name of [path, alias]) {
      const error = await open(name).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StorageInUseError);
      expect(String(error)).toContain("another gateway process uses");
    }
    await first.commits.commit(entryUnit("a", 1));
    await first.close();
    const second = await open(path);
    expect(await second.isHealthy()).toBe(true);
    await second.close();
  });

  test("fails the start for a statement with an unknown column", async () => {
    const commitStatements = {
      inserts: [{ name: "entry", table: "entries", columns: ["id", "acount"] }],
      adds: [],
    };
    const error = await openStorage({
      ...sampleOptions,
      url: `sqlite:${freshPath()}`,
      commitStatements,
    }).catch((reason: unknown) => reason);
    expect(String(error)).toContain("acount");
  });
});
