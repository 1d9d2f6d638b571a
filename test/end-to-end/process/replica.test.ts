import { afterAll, beforeAll, expect, test } from "bun:test";
import { type FaultScrapes, testAlert } from "../../support/alert-firing.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { type PostgresServer, startPostgres, startReplicaOf } from "../../support/postgres.ts";
import {
  endProcesses,
  runProcess,
  startProcess,
  type GatewayProcess,
} from "../../support/process.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, textAt } from "../api/at.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { getJson, postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { queryDatabase } from "./support/query-database.ts";
import { pollUntil } from "../../support/poll-until.ts";

let primary: PostgresServer;
let replica: Pick<PostgresServer, "url" | "stop">;
let isReplicaStopped = false;
let upstream: FaultUpstream;
/** The gateway of all tests. */
let opened: GatewayProcess;

beforeAll(async () => {
  [primary, upstream] = await Promise.all([startPostgres(), startFaultUpstream()]);
  replica = await startReplicaOf(primary);
  opened = await startProcess({
    yaml: acmeYaml(upstream.baseUrl),
    environment: {
      ...environment,
      DATABASE_URL: primary.url,
      DATABASE_REPLICA_URL: replica.url,
    },
  });
}, 240_000);
afterAll(async () => {
  await endProcesses();
  upstream.stop();
  if (!isReplicaStopped) await replica.stop();
  await primary.stop();
});

const environment = {
  ...bootstrapVariables,
  SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
};

const scrape = async (): Promise<string> => (await fetch(`${opened.url}/metrics`)).text();

async function metricOf(name: string): Promise<number> {
  const text = await scrape();
  return Number(new RegExp(`^switchyard_${name} (\\S+)$`, "m").exec(text)?.[1]);
}

/** Asks until the replica is read from, or no longer; the test's own time limit ends it. */
async function replicaIs(up: 0 | 1): Promise<void> {
  await pollUntil(async () => (await metricOf("replica_up")) === up);
}

/** What the connections of gateways at the replica asked last. */
const askedOfReplica = async (): Promise<string[]> =>
  (
    await queryDatabase(
      replica.url,
      "select query from pg_stat_activity where application_name = 'switchyard'",
    )
  ).map((row) => String(row["query"]));

const lists = [
  ["/analytics/generations?limit=10", "from generations"],
  ["/analytics/usage", "usage_"],
] as const;

test("lists and reports are read from the replica, and decisions from the primary", async () => {
  await replicaIs(1);
  const answer: unknown = await (await postChat(opened)).json();
  const generation = `gen_${textAt(answer, "id").split("-").at(-1)}`;
  for (const [path, table] of lists) {
    // A moment in which it lags on a busy machine sends a question to the primary.
    await pollUntil(async () => {
      await getJson(opened, path, testManagementKey);
      return (await askedOfReplica()).some((text) => text.includes(table));
    });
  }
  await getJson(opened, "/credits");
  await getJson(opened, "/key");
  expect(at(await getJson(opened, `/generation?id=${generation}`), "data.id")).toBe(generation);
  const others = (await askedOfReplica()).filter(
    (text) => !/generations|usage_|gateway_beats|^set /.test(text),
  );
  expect(others).toEqual([]);
  await pollUntil(async () => {
    const listed = await getJson(opened, "/analytics/generations?limit=10", testManagementKey);
    return at(listed, "data.0.id") === generation;
  });
}, 240_000);

let lagging: FaultScrapes;
test("a replica that stops replaying lags, and the primary answers", async () => {
  await replicaIs(1);
  const before = await scrape();
  await queryDatabase(replica.url, "select pg_wal_replay_pause()");
  await pollUntil(async () => (await metricOf("replica_lag_seconds")) > 5);
  lagging = { before, during: await scrape() };
  await queryDatabase(replica.url, "select pg_wal_replay_resume()");
  await pollUntil(async () => (await metricOf("replica_lag_seconds")) < 5);
}, 240_000);
testAlert("SwitchyardReplicaLags", () => lagging);

let away: FaultScrapes;
test("a replica that becomes unreachable is logged once, and the primary answers", async () => {
  await replicaIs(1);
  const generation = textAt(await (await postChat(opened)).json(), "id")
    .split("-")
    .at(-1);
  const before = await scrape();
  await replica.stop();
  isReplicaStopped = true;
  await replicaIs(0);
  away = { before, during: await scrape() };
  const fallbacks = await metricOf("replica_fallbacks_total");
  expect(
    at(await getJson(opened, "/analytics/generations?limit=1", testManagementKey), "data.0.id"),
  ).toBe(`gen_${generation}`);
  expect(await metricOf("replica_fallbacks_total")).toBeGreaterThan(fallbacks);
  await opened.stderrHas("the replica cannot be read from; the primary answers in its place");
  expect((await postChat(opened)).status).toBe(200);
  expect((await fetch(`${opened.url}/readyz`)).status).toBe(200);
}, 240_000);

testAlert("SwitchyardReplicaAway", () => away);

test("a replica beside SQLite is refused at the start", async () => {
  const { exitCode, stderr } = await runProcess({
    environment: { ...environment, DATABASE_REPLICA_URL: replica.url },
  });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("a replica needs Postgres as the database");
}, 240_000);
