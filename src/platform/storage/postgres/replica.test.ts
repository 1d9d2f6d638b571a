import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { Kysely, PostgresDialect, sql } from "kysely";
import { Client, Pool } from "pg";
import { CuttingProxy } from "../../../../test/support/cutting-proxy.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import {
  type PostgresServer,
  startPostgres,
  startReplicaOf,
} from "../../../../test/support/postgres.ts";
import { pollUntil } from "../../../../test/support/poll-until.ts";
import type { GatewayTables } from "../database-epoch.ts";
import { Replica } from "./replica.ts";

let primaryServer: PostgresServer;
let replicaServer: Pick<PostgresServer, "url" | "stop">;
let replicaAdmin: Client;
let primary: Kysely<GatewayTables>;
let proxy: CuttingProxy;
let clock: FakeClock;
let replica: Replica | undefined;
const warnings: string[] = [];

const beatsTable = sql`create table gateway_beats
  (node_id text not null primary key, beat bigint not null, at_ms bigint not null)`;

const databaseAt = (connectionString: string): Kysely<GatewayTables> =>
  new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString }) }) });

beforeAll(async () => {
  primaryServer = await startPostgres();
  primary = databaseAt(primaryServer.url);
  await beatsTable.execute(primary);
  await sql`create table notes (id integer)`.execute(primary);
  replicaServer = await startReplicaOf(primaryServer);
  replicaAdmin = new Client({ connectionString: replicaServer.url });
  await replicaAdmin.connect();
}, 240_000);
afterAll(async () => {
  await replicaAdmin.end();
  await primary.destroy();
  await replicaServer.stop();
  await primaryServer.stop();
});
beforeEach(async () => {
  const { hostname: host, port } = new URL(replicaServer.url);
  proxy = new CuttingProxy({ host, port: Number(port) });
  clock = new FakeClock();
  warnings.length = 0;
});
afterEach(async () => {
  await replicaAdmin.query("select pg_wal_replay_resume()");
  await replica?.close();
  replica = undefined;
  await proxy.close();
});

async function open(server = replicaServer.url): Promise<Replica> {
  const target = new URL(server);
  if (server === replicaServer.url) target.port = String(await proxy.listen());
  replica = new Replica({
    url: target.href,
    poolSize: 2,
    primary,
    sums: new Set(),
    clock,
    logger: {
      info: () => undefined,
      warn: (_, message) => void warnings.push(message),
      error: () => undefined,
    },
  });
  return replica;
}

/** Beats until the replica is read from, or no longer; the test's own time limit ends it. */
async function beatsUntil(opened: Replica, isRead: boolean): Promise<void> {
  while (replica === opened && opened.figures.isRead !== isRead) await opened.beat();
}

/** Resolves when the replica stands still. */
async function pauseReplay(): Promise<void> {
  await replicaAdmin.query("select pg_wal_replay_pause()");
  const isPaused = async (): Promise<boolean> => {
    const { rows } = await replicaAdmin.query<{ paused: boolean }>(
      "select pg_get_wal_replay_pause_state() = 'paused' as paused",
    );
    return rows[0]?.paused === true;
  };
  await pollUntil(isPaused);
}

/** Whether the server that answers is a replica. */
async function isAnsweredByReplica({ database }: Replica): Promise<boolean | undefined> {
  const { rows } = await sql<{ yes: boolean }>`select pg_is_in_recovery() as yes`.execute(database);
  return rows[0]?.yes;
}

const notesOf = async (database: Kysely<GatewayTables>): Promise<number | undefined> =>
  (await sql<{ count: number }>`select count(*)::integer as count from notes`.execute(database))
    .rows[0]?.count;

test("reads go to the replica and cannot write", async () => {
  const opened = await open();
  await beatsUntil(opened, true);
  expect(await isAnsweredByReplica(opened)).toBe(true);
  expect(opened.figures.fallbacks).toBe(0);
  const write = sql`insert into notes values (1)`.execute(opened.database);
  await expect(write).rejects.toThrow("read-only transaction");
  expect(await notesOf(primary)).toBe(0);
  expect(warnings).toEqual([]);
}, 240_000);

test("the primary serves reads until the replica shows its writes", async () => {
  proxy.mode = "refuse";
  const opened = await open();
  expect(await isAnsweredByReplica(opened)).toBe(false);
  expect(opened.figures).toMatchObject({ isRead: false, fallbacks: 1 });
  proxy.mode = "pass";
  await beatsUntil(opened, true);
  expect(await isAnsweredByReplica(opened)).toBe(true);
}, 240_000);

test("a lagging replica is read for ten seconds, then the primary, with one warning", async () => {
  const opened = await open();
  await beatsUntil(opened, true);
  await pauseReplay();
  await sql`insert into notes values (2)`.execute(primary);
  const before = await notesOf(opened.database);
  expect(before).toBe(((await notesOf(primary)) ?? 0) - 1);
  clock.advance(10_000);
  await opened.beat();
  expect(opened.figures.isRead).toBe(true);
  while (replica === opened && opened.figures.isRead) {
    clock.advance(1_000);
    await opened.beat();
  }
  expect(opened.figures.lagSeconds).toBeGreaterThan(10);
  expect(await notesOf(opened.database)).toBe((before ?? 0) + 1);
  await opened.beat();
  expect(warnings).toEqual(["the replica lags too far behind; the primary answers in its place"]);
  await replicaAdmin.query("select pg_wal_replay_resume()");
  await beatsUntil(opened, true);
  expect(await isAnsweredByReplica(opened)).toBe(true);
}, 240_000);

test("a suspended gateway does not count its own pause as replica lag", async () => {
  const opened = await open();
  await beatsUntil(opened, true);
  clock.advance(60_000);
  await opened.beat();
  expect(opened.figures).toMatchObject({ isRead: true });
  expect(warnings).toEqual([]);
}, 240_000);

test("a read that waits for an unresponsive replica is served by the primary", async () => {
  const opened = await open();
  await beatsUntil(opened, true);
  proxy.mode = "freeze";
  expect(await isAnsweredByReplica(opened)).toBe(false);
  expect(opened.figures.isRead).toBe(false);
  proxy.mode = "pass";
  proxy.cutAll();
  await beatsUntil(opened, true);
  expect(await isAnsweredByReplica(opened)).toBe(true);
}, 240_000);

test("a read without a connection to the replica is served by the primary", async () => {
  const opened = await open();
  await beatsUntil(opened, true);
  proxy.cutWhen = (request) => {
    if (request.includes("default_transaction_read_only")) proxy.mode = "freeze";
    return false;
  };
  proxy.mode = "lose-request";
  expect(await isAnsweredByReplica(opened)).toBe(false);
  expect(proxy.mode as string).toBe("freeze");
}, 240_000);

test("a read that fails on the replica is served by the primary, and the next one by the replica", async () => {
  const opened = await open();
  await beatsUntil(opened, true);
  const { rows } = await sql<{ answer: string }>`
    select case when pg_is_in_recovery() then 1 / (random() * 0)::integer else 7 end as answer`.execute(
    opened.database,
  );
  expect(rows).toEqual([{ answer: 7 as never }]);
  expect(opened.figures).toMatchObject({ isRead: true, fallbacks: 1 });
  expect(await isAnsweredByReplica(opened)).toBe(true);
}, 240_000);

test("a server that is not a replica of the database is never read", async () => {
  const other = databaseAt(await primaryServer.freshDatabase());
  await beatsTable.execute(other);
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(other);
  await other.destroy();
  const url = Object.assign(new URL(primaryServer.url), { pathname: `/${rows[0]?.name}` });
  const opened = await open(url.href);
  await opened.beat();
  while (replica === opened && warnings.length === 0) {
    clock.advance(11_000);
    await opened.beat();
  }
  expect(warnings).toEqual([
    "storage.replica_url does not show what is written to the database; the primary answers in its place",
  ]);
  expect(opened.figures.isRead).toBe(false);
}, 240_000);
