import { expect, test } from "bun:test";
import { sql } from "kysely";
import { Client } from "pg";
import { freshDatabase, startPostgres } from "../../../../test/support/postgres.ts";
import {
  entryUnit,
  sampleOptions,
  type SampleSchema,
} from "../../../../test/support/sample-commits.ts";
import { openStorage } from "../open-storage.ts";
import type { Storage } from "../storage.ts";
import { StorageInUseError } from "../storage-error.ts";

const open = (url: string, severalGateways: boolean): Promise<Storage<SampleSchema>> =>
  openStorage<SampleSchema>({ ...sampleOptions, url, severalGateways, lockTimeoutMs: 0 });

test("several gateways share a database, or one has it exclusively", async () => {
  const url = await freshDatabase();
  const [one, other] = await Promise.all([open(url, true), open(url, true)]);
  await expect(open(url, false)).rejects.toThrow(StorageInUseError);
  await Promise.all(
    [one, other].flatMap(({ commits }, node) =>
      Array.from({ length: 50 }, (_, index) => commits.commit(entryUnit(`${node}-${index}`, 1))),
    ),
  );
  expect(await one.database.selectFrom("entries").select("id").execute()).toHaveLength(100);
  await Promise.all([one.close(), other.close()]);
  const alone = await open(url, false);
  await expect(open(url, true)).rejects.toThrow(StorageInUseError);
  await alone.close();
}, 240_000);

test("exclusive work runs on one gateway at a time", async () => {
  const url = await freshDatabase();
  const storages = await Promise.all([open(url, true), open(url, true)]);
  let inside = 0;
  const most = await Promise.all(
    storages.flatMap((storage) =>
      [0, 1].map(() =>
        storage.alone(async () => {
          inside += 1;
          const seen = inside;
          await storage.isHealthy();
          inside -= 1;
          return seen;
        }),
      ),
    ),
  );
  expect(most).toEqual([1, 1, 1, 1]);
  await Promise.all(storages.map((storage) => storage.close()));
}, 240_000);

test("sums on one gateway include the commits of another at once, whichever folds", async () => {
  const url = await freshDatabase();
  const storages = await Promise.all([open(url, true), open(url, true)]);
  const totals = ({ database }: Storage<SampleSchema>) =>
    database.selectFrom("totals").selectAll().execute();
  let lowest = 0;
  await Promise.all(
    storages.flatMap((storage, node) =>
      Array.from({ length: 40 }, async (_, index) => {
        await storage.commits.commit(entryUnit(`${node}-${index}`, 2));
        lowest += 1;
        const before = lowest;
        const [total] = await totals(storages[1 - node] ?? storage);
        expect(total?.entries).toBeGreaterThanOrEqual(before);
        expect(total?.amount).toBe((total?.entries ?? 0) * 2);
      }),
    ),
  );
  for (const storage of storages)
    expect(await totals(storage)).toEqual([{ account: "acme", amount: 160, entries: 80 }]);
  await Promise.all(storages.map((storage) => storage.close()));
}, 240_000);

test("sums in a repeatable-read transaction count exactly the rows that it sees", async () => {
  const url = await freshDatabase();
  const [one, other] = await Promise.all([open(url, true), open(url, true)]);
  let isOver = false;
  const committing = (async () => {
    for (let count = 0; !isOver; count += 1) await other.commits.commit(entryUnit(`e${count}`, 1));
  })();
  for (let reading = 0; reading < 30; reading += 1) {
    const seen = await one.database
      .transaction()
      .setIsolationLevel("repeatable read")
      .execute(async (transaction) => {
        const rows = await transaction.selectFrom("entries").select("id").execute();
        const [total] = await transaction.selectFrom("totals").select("entries").execute();
        return { rows: rows.length, summed: total?.entries ?? 0 };
      });
    expect(seen.summed).toBe(seen.rows);
  }
  isOver = true;
  await committing;
  await Promise.all([one.close(), other.close()]);
}, 240_000);

test("commits of another release are folded with that release's statements", async () => {
  const url = await freshDatabase();
  const storage = await open(url, true);
  await storage.commits.commit(entryUnit("a", 5));
  const sums = [
    { name: "unknown", table: "notes", keyColumns: ["id"], sumColumns: ["weight"] },
    { name: "total", table: "totals", keyColumns: ["account"], sumColumns: ["amount", "entries"] },
  ];
  await sql`insert into commit_formats (id, sums) values ('other', ${JSON.stringify(sums)})`.execute(
    storage.database,
  );
  await sql`insert into commit_growths (id, format, growths)
    values ('b', 'other', ${JSON.stringify({ 1: [["acme", "7", 1]] })})`.execute(storage.database);
  expect(await storage.database.selectFrom("totals").selectAll().execute()).toEqual([
    { account: "acme", amount: 12, entries: 2 },
  ]);
  await storage.close();
}, 240_000);

/** Starts a Postgres whose disk takes a number of milliseconds for each commit. */
async function startSlowPostgres(milliseconds: number) {
  const server = await startPostgres();
  const client = new Client({ connectionString: server.url });
  await client.connect();
  const settings = {
    fsync: "on",
    commit_delay: String(milliseconds * 1_000),
    commit_siblings: "0",
  };
  for (const [name, value] of Object.entries(settings))
    await client.query(`alter system set ${name} = ${value}`);
  await client.query("select pg_reload_conf()");
  await client.end();
  return server;
}

test("on a slow disk, a commit releases its row locks before it waits for the disk", async () => {
  const server = await startSlowPostgres(60);
  const url = await server.freshDatabase();
  const storage = await open(url, true);
  const isVisible = async (id: string): Promise<boolean> =>
    (await storage.database.selectFrom("entries").select("id").where("id", "=", id).execute())
      .length > 0;
  // Where a commit waits for the disk first, others see it at the earliest just before its answer.
  let wasSeenEarly = false;
  for (let index = 0; !wasSeenEarly; index += 1) {
    let isAnswered = false;
    const committing = storage.commits.commit(entryUnit(`early-${index}`, 1)).then(() => {
      isAnswered = true;
    });
    let seen = 0;
    while (!isAnswered) if (await isVisible(`early-${index}`)) seen += 1;
    await committing;
    wasSeenEarly = seen > 3;
  }
  await storage.close();
  await server.stop();
}, 240_000);

/** Returns the process of a new connection, once the server has recovered from a crash. */
async function newBackend(connectionString: string): Promise<number> {
  for (;;) {
    const client = new Client({ connectionString });
    client.on("error", () => undefined);
    const pid = await client
      .connect()
      .then(() => client.query<{ pid: number }>("select pg_backend_pid() as pid"))
      .then(
        ({ rows }) => rows[0]?.pid,
        () => undefined,
      );
    if (pid !== undefined) return pid;
    await Bun.sleep(10);
  }
}

test("a commit confirmed by Postgres with a slow disk is stored once after a crash", async () => {
  const server = await startSlowPostgres(10);
  const url = await server.freshDatabase();
  const storages = await Promise.all([open(url, true), open(url, true)]);
  const answered: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    const before = answered.length;
    const victim = await newBackend(url);
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const id = `${round}-${index}`;
        await storages[index % 2]!.commits.commit(entryUnit(id, 1));
        answered.push(id);
        // When a backend is killed, the server loses everything that was not written to its log
        // yet.
        if (answered.length === before + 5) process.kill(victim, "SIGKILL");
        if (index >= 20) return;
        await storages[index % 2]!.commits.commit(entryUnit(`${id}-more`, 1));
        answered.push(`${id}-more`);
      }),
    );
  }
  const found = await storages[0]!.database.selectFrom("entries").select("id").execute();
  expect(found.map(({ id }) => id).toSorted()).toEqual(answered.toSorted());
  const [total] = await storages[0]!.database.selectFrom("totals").selectAll().execute();
  expect(total?.entries).toBe(answered.length);
  await Promise.all(storages.map((storage) => storage.close()));
  await server.stop();
}, 240_000);
