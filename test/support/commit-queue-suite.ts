import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { openStorage } from "../../src/platform/storage/open-storage.ts";
import type { Storage } from "../../src/platform/storage/storage.ts";
import {
  DatabaseError,
  isUniqueViolation,
  StorageUnavailableError,
} from "../../src/platform/storage/storage-error.ts";
import {
  entryUnit,
  noteInsert,
  sampleOptions,
  type SampleSchema,
  totalAdd,
} from "./sample-commits.ts";

/**
 * Tests the promises of a commit queue on one storage engine; every engine must keep the same ones.
 */
export function commitQueueSuite(name: string, freshUrl: () => Promise<string>): void {
  describe(`${name} storage`, () => {
    let url: string;
    let storage: Storage<SampleSchema>;

    beforeEach(async () => {
      url = await freshUrl();
      storage = await openStorage<SampleSchema>({ url, ...sampleOptions });
    }, 60_000);

    afterEach(() => storage.close());

    const entryIds = async () =>
      (await storage.database.selectFrom("entries").select("id").orderBy("id").execute()).map(
        ({ id }) => id,
      );
    const totals = () =>
      storage.database.selectFrom("totals").selectAll().orderBy("account").execute();

    test("a unit that is committed can be read at once, all of it", async () => {
      await storage.commits.commit(entryUnit("a", 5));
      expect(await entryIds()).toEqual(["a"]);
      expect(await totals()).toEqual([{ account: "acme", amount: 5, entries: 1 }]);
    });

    test("nothing of a refused unit stands: neither its other inserts nor its sums", async () => {
      const refused = storage.commits.commit({
        inserts: [...entryUnit("a", 5).inserts, ...entryUnit("b", 13).inserts],
        adds: entryUnit("a", 5).adds,
      });
      expect(await refused.catch((error: unknown) => error)).toBeInstanceOf(DatabaseError);
      expect(await entryIds()).toEqual([]);
      expect(await totals()).toEqual([]);
    });

    test("one refused unit takes no other down, wherever it stands in the batch", async () => {
      const poisoned = new Set([0, 7, 8, 30, 49]);
      const commits = Array.from({ length: 50 }, (_, index) =>
        storage.commits.commit(entryUnit(`entry-${index}`, poisoned.has(index) ? 13 : 1)),
      );
      const outcomes = await Promise.allSettled(commits);
      expect(
        outcomes.flatMap(({ status }, index) => (status === "rejected" ? [index] : [])),
      ).toEqual([...poisoned]);
      expect(await totals()).toEqual([{ account: "acme", amount: 45, entries: 45 }]);
      expect(await entryIds()).toHaveLength(45);
    });

    test("an id twice in one batch is accepted once, and the refusal can be told", async () => {
      const outcomes = await Promise.allSettled(
        [1, 2, 3].map((amount) => storage.commits.commit(entryUnit("same", amount))),
      );
      const refusals = outcomes.flatMap((outcome) =>
        outcome.status === "rejected" ? [outcome.reason as unknown] : [],
      );
      expect(refusals).toHaveLength(2);
      expect(refusals.every(isUniqueViolation)).toBe(true);
      expect(await totals()).toMatchObject([{ entries: 1 }]);
    });

    test("sums are exact under 1,000 concurrent units, in whatever order they come", async () => {
      const accounts = ["acme", "b", 'quoted "c"', "d\ne", "é😀", "\\u0001", "a", "A"];
      const units = Array.from({ length: 1_000 }, (_, index) => ({
        id: `entry-${index}`,
        amount: index * 7 - 500,
        account: accounts[index % 8] ?? "",
      })).filter(({ amount }) => amount !== 13);
      const shuffled = units.toSorted((left, right) =>
        Bun.hash(left.id) < Bun.hash(right.id) ? -1 : 1,
      );
      await Promise.all(
        shuffled.map(({ id, amount, account }) =>
          storage.commits.commit(entryUnit(id, amount, account)),
        ),
      );
      const expected = accounts
        .toSorted((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)))
        .map((account) => {
          const own = units.filter((unit) => unit.account === account);
          return {
            account,
            amount: own.reduce((sum, { amount }) => sum + amount, 0),
            entries: own.length,
          };
        });
      expect(await totals()).toEqual(expected);
    });

    test("integers are exact: to 2^53 as numbers, beyond as bigint", async () => {
      const largest = Number.MAX_SAFE_INTEGER;
      await Promise.all([
        storage.commits.commit(entryUnit("a", largest)),
        storage.commits.commit(entryUnit("b", largest)),
        storage.commits.commit(entryUnit("c", -largest, "negative")),
        storage.commits.commit(entryUnit("d", 2 ** 51 + 1, "middle")),
      ]);
      await storage.commits.commit(entryUnit("e", largest));
      expect(await totals()).toEqual([
        { account: "acme", amount: 3n * BigInt(largest), entries: 3 },
        { account: "middle", amount: 2 ** 51 + 1, entries: 1 },
        { account: "negative", amount: -largest, entries: 1 },
      ]);
    });

    test("text, null and fractions come back as they were", async () => {
      const rows: [string, string | null, number | null][] = [
        ["1", 'naïve 😀 "quoted" \\ \n', 0.1],
        ["2", null, null],
        ["3", "", -1e-7],
        ["4", "{}", 3],
      ];
      for (const values of rows)
        await storage.commits.commit({ inserts: [{ statement: noteInsert, values }], adds: [] });
      const read = await storage.database.selectFrom("notes").selectAll().orderBy("id").execute();
      expect(read.map(({ id, text, weight }) => [id, text, weight] as unknown)).toEqual(rows);
    });

    test("a client's broken text does not cost the charge beside it", async () => {
      await storage.commits.commit({
        inserts: [{ statement: noteInsert, values: ["1", "nul \0 half \ud83d pair", 1] }],
        adds: entryUnit("a", 5).adds,
      });
      expect(await totals()).toMatchObject([{ amount: 5 }]);
      const [note] = await storage.database.selectFrom("notes").select("text").execute();
      expect(note?.text).toMatch(/^nul . half \ufffd pair$/s);
    });

    const unfit: [string, () => Promise<void>][] = [
      ["NaN", () => storage.commits.commit(entryUnit("a", Number.NaN))],
      ["an integer beyond 2^53", () => storage.commits.commit(entryUnit("a", 2 ** 53))],
      [
        "too few values",
        () =>
          storage.commits.commit({ inserts: [{ statement: noteInsert, values: ["a"] }], adds: [] }),
      ],
      [
        "a null key",
        () =>
          storage.commits.commit({
            inserts: [],
            adds: [{ statement: totalAdd, key: [null], sums: [1, 1] }],
          }),
      ],
      [
        "an undeclared statement",
        () =>
          storage.commits.commit({
            inserts: [{ statement: { ...noteInsert, name: "other" }, values: ["a", null, 1] }],
            adds: [],
          }),
      ],
    ];
    test.each(unfit)("%s is refused before it is sent", async (_, commit) => {
      expect(await commit().catch((error: unknown) => error)).toBeInstanceOf(TypeError);
      expect(storage.commits.pendingCount).toBe(0);
    });

    test("flush resolves when everything accepted so far is durable", async () => {
      const settled: string[] = [];
      const commits = Array.from({ length: 300 }, (_, index) =>
        storage.commits
          .commit(entryUnit(`entry-${index}`, 1))
          .then(() => settled.push(`entry-${index}`)),
      );
      expect(storage.commits.pendingCount).toBe(300);
      await storage.commits.flush();
      expect(await entryIds()).toHaveLength(300);
      await Promise.all(commits);
      expect(settled).toHaveLength(300);
      expect(storage.commits.pendingCount).toBe(0);
      await storage.commits.flush();
    });

    test("close settles what was accepted, and refuses what comes later", async () => {
      const accepted = Promise.all(
        Array.from({ length: 200 }, (_, index) =>
          storage.commits.commit(entryUnit(`entry-${index}`, 1)),
        ),
      );
      const closed = storage.close();
      const late = await storage.commits
        .commit(entryUnit("late", 1))
        .catch((error: unknown) => error);
      expect(late).toBeInstanceOf(StorageUnavailableError);
      await closed;
      await accepted;
      storage = await openStorage<SampleSchema>({ url, ...sampleOptions });
      expect(await entryIds()).toHaveLength(200);
      expect(await totals()).toEqual([{ account: "acme", amount: 200, entries: 200 }]);
    });

    test("transactions and commits interleave without mixing", async () => {
      await storage.database
        .insertInto("notes")
        .values({ id: "counter", text: null, weight: 0 })
        .execute();
      const readAndWrite = () =>
        storage.database.transaction().execute(async (transaction) => {
          await transaction
            .updateTable("notes")
            .set({ text: "locked" })
            .where("id", "=", "counter")
            .execute();
          const { weight } = await transaction
            .selectFrom("notes")
            .select("weight")
            .where("id", "=", "counter")
            .executeTakeFirstOrThrow();
          await Promise.resolve();
          await transaction
            .updateTable("notes")
            .set({ weight: (weight ?? 0) + 1 })
            .where("id", "=", "counter")
            .execute();
        });
      const rollBack = () =>
        storage.database
          .transaction()
          .execute(async (transaction) => {
            await transaction
              .insertInto("notes")
              .values({ id: "never", text: null, weight: null })
              .execute();
            throw new Error("rolled back on purpose");
          })
          .catch(() => undefined);
      await Promise.all(
        Array.from({ length: 60 }, (_, index) => [
          storage.commits.commit(entryUnit(`entry-${index}`, 1)),
          readAndWrite(),
          rollBack(),
          storage.database
            .insertInto("notes")
            .values({ id: `note-${index}`, text: null, weight: null })
            .execute(),
        ]).flat(),
      );
      expect(await totals()).toEqual([{ account: "acme", amount: 60, entries: 60 }]);
      const notes = await storage.database.selectFrom("notes").selectAll().execute();
      expect(notes.find(({ id }) => id === "counter")?.weight).toBe(60);
      expect(notes).toHaveLength(61);
    });

    test("savepoints, returning and affected rows work through Kysely", async () => {
      const returned = await storage.database
        .insertInto("notes")
        .values({ id: "a", text: "x", weight: 1 })
        .returning(["id", "weight"])
        .execute();
      expect(returned).toEqual([{ id: "a", weight: 1 }]);
      const { numUpdatedRows } = await storage.database
        .updateTable("notes")
        .set({ text: "y" })
        .where("id", "in", ["a", "b"])
        .executeTakeFirstOrThrow();
      expect(numUpdatedRows).toBe(1n);
      const transaction = await storage.database.startTransaction().execute();
      const inner = await transaction.savepoint("inner").execute();
      await inner.deleteFrom("notes").execute();
      await inner.rollbackToSavepoint("inner").execute();
      await transaction.commit().execute();
      expect(await storage.database.selectFrom("notes").select("text").execute()).toEqual([
        { text: "y" },
      ]);
      const twice = storage.database
        .insertInto("notes")
        .values({ id: "a", text: null, weight: null })
        .execute();
      expect(isUniqueViolation(await twice.catch((error: unknown) => error))).toBe(true);
    });

    test("sums and averages are numbers on every engine", async () => {
      await Promise.all(
        [1, 2, 4].map((amount) => storage.commits.commit(entryUnit(`entry-${amount}`, amount))),
      );
      const row = await storage.database
        .selectFrom("entries")
        .select(({ fn }) => [
          fn.sum<number>("amount").as("sum"),
          fn.avg<number>("amount").as("average"),
          fn.countAll<number>().as("count"),
        ])
        .executeTakeFirstOrThrow();
      expect({ ...row, average: Number(row.average.toFixed(6)) }).toEqual({
        sum: 7,
        average: 2.333333,
        count: 3,
      });
    });

    test("it is healthy while it is open", async () => {
      expect(await storage.isHealthy()).toBe(true);
      await storage.close();
      expect(await storage.isHealthy()).toBe(false);
      storage = await openStorage<SampleSchema>({ url, ...sampleOptions });
    });
  });
}
