import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { commitQueueSuite } from "../../../../test/support/commit-queue-suite.ts";
import { rawSumsSuite } from "../../../../test/support/raw-sums-suite.ts";
import { CuttingProxy } from "../../../../test/support/cutting-proxy.ts";
import { freshDatabase } from "../../../../test/support/postgres.ts";
import {
  entryUnit,
  sampleOptions,
  type SampleSchema,
} from "../../../../test/support/sample-commits.ts";
import { openStorage } from "../open-storage.ts";
import type { Storage } from "../storage.ts";
import { StorageInUseError, StorageUnavailableError } from "../storage-error.ts";
import { reasonOf } from "./postgres-error.ts";

commitQueueSuite("Postgres", freshDatabase);
rawSumsSuite("Postgres", freshDatabase);

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("Postgres behind an unreliable network", () => {
  let directUrl: string;
  let proxy: CuttingProxy;
  let storage: Storage<SampleSchema>;
  let onWarning: () => void;

  beforeEach(async () => {
    directUrl = await freshDatabase();
    const { hostname, port } = new URL(directUrl);
    proxy = new CuttingProxy({ host: hostname, port: Number(port) });
    const url = Object.assign(new URL(directUrl), { port: String(await proxy.listen()) }).href;
    onWarning = () => {};
    const logger = { info: () => {}, warn: () => onWarning(), error: () => {} };
    storage = await openStorage<SampleSchema>({
      ...sampleOptions,
      url,
      logger,
      commitTimeoutMs: 3_000,
      lockTimeoutMs: 0,
    });
    // The statement is prepared on its first use; from then on a commit is one message.
    await storage.commits.commit(entryUnit("first", 1));
  }, 240_000);

  afterEach(async () => {
    proxy.mode = "pass";
    await storage.close();
    await proxy.close();
  });

  async function query(text: string): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: directUrl });
    await client.connect();
    const { rows } = await client.query<Record<string, unknown>>(text);
    await client.end();
    return rows;
  }

  /** What the table of sums says, after a query of the gateway's own has had it folded. */
  async function totals(columns: string): Promise<Record<string, unknown>[]> {
    await storage.database.selectFrom("totals").select("amount").execute();
    return query(`select ${columns} from totals`);
  }

  const entryIds = async () =>
    (await query("select id from entries order by id")).map(({ id }) => id);
  const isCommit = (request: Buffer) => request.includes("second");

  /** Cuts once: the connection that follows passes. */
  function cutOnce(mode: "lose-request" | "lose-answer"): void {
    proxy.mode = mode;
    proxy.cutWhen = (request) => {
      if (!isCommit(request)) return false;
      if (mode === "lose-request") proxy.mode = "pass";
      else queueMicrotask(() => (proxy.mode = "pass"));
      return true;
    };
  }

  test.each(["lose-request", "lose-answer"] as const)(
    "%s: commits the unit exactly once",
    async (mode) => {
      cutOnce(mode);
      await storage.commits.commit(entryUnit("second", 2));
      expect(await entryIds()).toEqual(["first", "second"]);
      expect(await totals("amount")).toEqual([{ amount: "3" }]);
    },
  );

  test("does not accumulate marks of batches", async () => {
    for (let index = 0; index < 20; index++)
      await storage.commits.commit(entryUnit(`entry-${index}`, 1));
    expect(await query("select count(*) from commit_batches")).toEqual([{ count: "1" }]);
  });

  test("commits each unit once while the server keeps terminating the session", async () => {
    const ends = (async () => {
      for (let round = 0; round < 10; round++) {
        await query(
          "select pg_terminate_backend(pid) from pg_stat_activity " +
            "where datname = current_database() and application_name like 'switchyard%'",
        );
      }
    })();
    const commits: Promise<void>[] = [];
    for (let index = 0; index < 400; index++) {
      commits.push(storage.commits.commit(entryUnit(`entry-${index}`, 1)));
      if (index % 8 === 0) await nextTurn();
    }
    const outcomes = await Promise.allSettled(commits);
    await ends;
    const committed = outcomes.filter(({ status }) => status === "fulfilled").length;
    expect(committed).toBeGreaterThan(0);
    expect(await query("select count(*)::int as entries from entries")).toEqual([
      { entries: committed + 1 },
    ]);
    expect(await totals("entries::int as entries")).toEqual([{ entries: committed + 1 }]);
  }, 240_000);

  test("refuses commits after their timeout while down, and settles one in progress afterwards", async () => {
    proxy.mode = "refuse";
    const undecided = storage.commits.commit(entryUnit("second", 2));
    // One turn of the event loop: the batch is on its way, and what follows is not part of it.
    await nextTurn();
    proxy.cutAll();
    const startMs = performance.now();
    const refused = await storage.commits
      .commit(entryUnit("third", 3))
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StorageUnavailableError);
    expect(performance.now() - startMs).toBeGreaterThan(2_900);
    expect(await storage.isHealthy()).toBe(false);
    proxy.mode = "pass";
    await undecided;
    expect(await entryIds()).toEqual(["first", "second"]);
    await storage.commits.commit(entryUnit("fourth", 4));
    expect(await totals("amount")).toEqual([{ amount: "7" }]);
    expect(await storage.isHealthy()).toBe(true);
  }, 240_000);

  test("does not block the close of a storage while it is down", async () => {
    proxy.mode = "refuse";
    const undecided = storage.commits
      .commit(entryUnit("second", 2))
      .catch((error: unknown) => error);
    // One turn of the event loop: the batch is on its way, and what follows is not part of it.
    await nextTurn();
    proxy.cutAll();
    await storage.close();
    expect(await undecided).toBeInstanceOf(StorageUnavailableError);
  }, 240_000);

  test("commits once if a connection dies silently and is replaced", async () => {
    proxy.mode = "lose-request";
    proxy.cutWhen = (request) => {
      if (isCommit(request)) proxy.mode = "freeze";
      return false;
    };
    const lost = Promise.withResolvers<void>();
    onWarning = lost.resolve;
    const commit = storage.commits.commit(entryUnit("second", 2));
    await lost.promise;
    proxy.mode = "pass";
    await commit;
    expect(await entryIds()).toEqual(["first", "second"]);
  }, 240_000);
});

describe("a database for one gateway", () => {
  test("refuses a second gateway and names the first", async () => {
    const url = await freshDatabase();
    const first = await openStorage({ ...sampleOptions, url });
    const error = await openStorage({ ...sampleOptions, url, lockTimeoutMs: 0 }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(StorageInUseError);
    expect(String(error)).toMatch(
      /another gateway uses this database \(process \d+ from 127\.0\.0\.1 since /,
    );
    await first.close();
  }, 240_000);

  test("is passed to a successor when its predecessor stops", async () => {
    const url = await freshDatabase();
    const first = await openStorage({ ...sampleOptions, url });
    const second = openStorage({ ...sampleOptions, url });
    await first.close();
    await (await second).close();
  }, 240_000);

  test("is named without its password if the server is unreachable", async () => {
    const error = await openStorage({
      ...sampleOptions,
      url: "postgres://user:hidden@127.0.0.1:1/x",
    }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StorageUnavailableError);
    expect(String(error)).toContain("cannot open the Postgres database at 127.0.0.1:1");
    expect(String(error)).not.toContain("hidden");
  });

  test("names the way out where the authority of the certificate is not known", () => {
    const error = new Error("unable to verify the first certificate");
    expect(reasonOf(Object.assign(error, { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }))).toBe(
      "unable to verify the first certificate; name the certificate of its authority in the URL: ?sslmode=verify-full&sslrootcert=FILE",
    );
    expect(reasonOf(new AggregateError([error, "gone"]))).toEndWith("FILE; gone");
  });

  test("fails the start for a statement with an unknown column", async () => {
    const commitStatements = {
      inserts: [{ name: "entry", table: "entries", columns: ["id", "acount"] }],
      adds: [],
    };
    const error = await openStorage({
      ...sampleOptions,
      url: await freshDatabase(),
      commitStatements,
    }).catch((reason: unknown) => reason);
    expect(String(error)).toContain("entries.acount");
  }, 240_000);
});
