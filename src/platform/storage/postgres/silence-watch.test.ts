import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { Client } from "pg";
import { CuttingProxy } from "../../../../test/support/cutting-proxy.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { freshDatabase } from "../../../../test/support/postgres.ts";
import {
  entryUnit,
  sampleOptions,
  type SampleSchema,
} from "../../../../test/support/sample-commits.ts";
import { pollUntil } from "../../../../test/support/poll-until.ts";
import { openStorage } from "../open-storage.ts";
import type { Storage } from "../storage.ts";
import { StorageUnavailableError } from "../storage-error.ts";
import { type QueryClient, SilenceWatch } from "./silence-watch.ts";

const silentLogger = { info: () => {}, warn: () => {}, error: () => {} };

/** A watch over a database that is played: the test hears of each probe and answers it. */
function watchOf() {
  const clock = new FakeClock();
  const silences: string[] = [];
  const probed: PromiseWithResolvers<void>[] = [];
  let onProbe = Promise.withResolvers<PromiseWithResolvers<void>>();
  const watch = new SilenceWatch({
    probes: {
      query: () => {
        const answer = Promise.withResolvers<void>();
        probed.push(answer);
        onProbe.resolve(answer);
        onProbe = Promise.withResolvers();
        return answer.promise;
      },
      end: () => Promise.resolve(),
    },
    silentAfterMs: 5_000,
    clock,
    logger: silentLogger,
  });
  watch.start((cause) => silences.push(cause));
  return { clock, watch, silences, probed, nextProbe: () => onProbe.promise };
}

describe("SilenceWatch", () => {
  test("treats a database that answers its probe as slow, not silent", async () => {
    const { clock, watch, silences, nextProbe } = watchOf();
    const question = Promise.withResolvers<string>();
    const answer = watch.answerOf(() => question.promise);
    for (let round = 0; round < 3; round += 1) {
      const next = nextProbe();
      clock.advance(4_000);
      (await next).resolve();
      // The watch has heard of it then.
      await new Promise(setImmediate);
    }
    question.resolve("slow");
    expect(await answer).toBe("slow");
    expect([silences, watch.isSilent]).toEqual([[], false]);
    await watch.stop();
  });

  test("rejects waiting and new queries during a silence, and admits all after the first answer", async () => {
    const { clock, watch, silences, nextProbe } = watchOf();
    const waiting = watch.answerOf(() => new Promise(() => {})).catch((error: unknown) => error);
    const unanswered = nextProbe();
    clock.advance(1_000);
    const probe = await unanswered;
    clock.advance(4_000);
    expect(await waiting).toBeInstanceOf(StorageUnavailableError);
    expect([silences, watch.isSilent]).toEqual([["the database does not answer"], true]);
    const asked: string[] = [];
    const refused = await watch
      .answerOf(async () => asked.push("new"))
      .catch((error: unknown) => error);
    expect([refused, asked]).toEqual([expect.any(StorageUnavailableError), []]);
    const next = nextProbe();
    probe.reject(new Error("Query read timeout"));
    (await next).resolve();
    while (watch.isSilent) await new Promise(setImmediate);
    expect(await watch.answerOf(async () => "back")).toBe("back");
    await watch.stop();
  });

  test("releases a connection that arrives after the silence in which it was given up", async () => {
    const { clock, watch, nextProbe } = watchOf();
    const connection = Promise.withResolvers<QueryClient>();
    const pool = watch.pool({ connect: () => connection.promise, end: () => Promise.resolve() });
    const waiting = pool.connect().catch((error: unknown) => error);
    const unanswered = nextProbe();
    clock.advance(1_000);
    const probe = await unanswered;
    clock.advance(4_000);
    expect(await waiting).toBeInstanceOf(StorageUnavailableError);
    probe.resolve();
    while (watch.isSilent) await new Promise(setImmediate);
    const released = Promise.withResolvers<unknown>();
    connection.resolve({
      query: () => Promise.reject(new Error("no question is expected")),
      release: released.resolve,
    });
    expect(await released.promise).toBe(true);
    await watch.stop();
  });

  test("does not count time in which the process itself was suspended", async () => {
    const { clock, watch, silences, nextProbe } = watchOf();
    const waiting = watch.answerOf(() => new Promise<string>(() => {}));
    waiting.catch(() => undefined);
    clock.standStill(60_000);
    const next = nextProbe();
    clock.advance(1_000);
    (await next).resolve();
    expect(silences).toEqual([]);
    await watch.stop();
  });
});

describe("Postgres that keeps connections open without responding", () => {
  let directUrl: string;
  let proxy: CuttingProxy;
  let storage: Storage<SampleSchema>;

  beforeEach(async () => {
    directUrl = await freshDatabase();
    const { hostname, port } = new URL(directUrl);
    proxy = new CuttingProxy({ host: hostname, port: Number(port) });
    const url = Object.assign(new URL(directUrl), { port: String(await proxy.listen()) }).href;
    storage = await openStorage<SampleSchema>({
      ...sampleOptions,
      url,
      poolSize: 2,
      logger: silentLogger,
      lockTimeoutMs: 0,
    });
    await storage.commits.commit(entryUnit("first", 1));
  }, 240_000);

  afterEach(async () => {
    proxy.mode = "pass";
    await storage.close();
    await proxy.close();
  });

  const read = () => sql`select id from entries order by id`.execute(storage.database);
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  test("rejects waiting reads and transactions, admits none, and recovers when it responds", async () => {
    await read();
    proxy.mode = "freeze";
    // More than the pool has connections, one of them in a transaction.
    const waiting = [
      storage.database.transaction().execute((database) => sql`select 1`.execute(database)),
      ...Array.from({ length: 5 }, read),
    ].map(failureOf);
    for (const failure of await Promise.all(waiting)) expect(failure).toBeDefined();
    await pollUntil(() => !storage.commits.admits());
    expect(await storage.isHealthy()).toBe(false);
    expect(await failureOf(read())).toBeInstanceOf(StorageUnavailableError);

    proxy.mode = "pass";
    await pollUntil(() => storage.isHealthy());
    expect((await read()).rows).toEqual([{ id: "first" }]);
    await storage.commits.commit(entryUnit("second", 2));
    expect(storage.commits.admits()).toBe(true);
  }, 240_000);

  test("commits a unit in progress once, whether it had arrived or not", async () => {
    for (const [id, arrives] of [
      ["second", false],
      ["third", true],
    ] as const) {
      const sent = Promise.withResolvers<void>();
      proxy.mode = arrives ? "lose-request" : "freeze";
      proxy.cutWhen = (request) => {
        if (!request.includes(id)) return false;
        // This request is still passed on, and nothing after it.
        proxy.mode = "freeze";
        sent.resolve();
        return false;
      };
      const commit = storage.commits.commit(entryUnit(id, 2));
      if (arrives) await sent.promise;
      await pollUntil(() => !storage.commits.admits());
      proxy.mode = "pass";
      await commit;
    }
    const client = new Client({ connectionString: directUrl });
    await client.connect();
    const { rows } = await client.query("select id from entries order by id");
    await client.end();
    expect(rows).toEqual([{ id: "first" }, { id: "second" }, { id: "third" }]);
  }, 240_000);
});
