import { afterAll, expect, test } from "bun:test";
import { type ClickHouseServer, startClickHouse } from "../../support/clickhouse.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { endProcesses, type GatewayProcess, startProcess } from "../../support/process.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, numberAt } from "../api/at.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { getJson, postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { pollUntil } from "../../support/poll-until.ts";

let clickhouse: ClickHouseServer | undefined;
afterAll(async () => {
  await endProcesses();
  await clickhouse?.stop();
});

async function metric({ url }: GatewayProcess, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^switchyard_${name} (\\S+)$`, "m").exec(text)?.[1]);
}

/** Resolves when the gateway has archived so many records, or so many prompts with answers. */
async function archived(
  gateway: GatewayProcess,
  count: number,
  name = "archived_records_total",
): Promise<void> {
  await pollUntil(async () => (await metric(gateway, name)) >= count);
}

/** Resolves when the archive has a table for prompts and answers that forgets them after a time. */
async function lifeOfContents(server: ClickHouseServer, life: string): Promise<void> {
  const query =
    "select create_table_query as text from system.tables where name = 'switchyard_contents'";
  await pollUntil(async () =>
    (await server.ask("records", query)).some(({ text }) => text?.includes(life)),
  );
}

async function ask(gateway: GatewayProcess, count: number): Promise<void> {
  for (let asked = 0; asked < count; asked++) expect((await postChat(gateway)).status).toBe(200);
}

test("a gateway archives its records and keeps serving while the archive is down", async () => {
  clickhouse = await startClickHouse();
  const upstream = await startFaultUpstream();
  const gateway = await startProcess({
    environment: { ...bootstrapVariables, CLICKHOUSE_URL: clickhouse.urlOf("records") },
    yaml: acmeYaml(upstream.baseUrl, "archive: { reads: always, days: 400, content_days: 3 }\n"),
  });
  await ask(gateway, 3);
  await archived(gateway, 3);
  const rows = await clickhouse.ask("records", "select * from switchyard_generations");
  expect(rows.length).toBe(3);
  await lifeOfContents(clickhouse, "toIntervalDay(3)");
  const usage = await getJson(gateway, "/analytics/usage?interval=day", testManagementKey);
  const counts = listAt(usage, "data").map((day) => numberAt(day, "requests"));
  expect(counts.reduce((sum, requests) => sum + requests, 0)).toBe(3);
  expect(at(await getJson(gateway, "/health"), "components.clickhouse.status")).toBe("healthy");

  const kept = await fetch(`${gateway.url}/api/v1/security/privacy`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ keep_contents: true }),
  });
  expect(kept.status).toBe(200);
  await clickhouse.kill();
  await ask(gateway, 2);
  await gateway.stderrHas("records could not be archived yet");
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
  const listed = await getJson(gateway, "/analytics/generations", testManagementKey);
  expect(at(listed, "data.length")).toBe(5);
  await clickhouse.restart();
  await archived(gateway, 5);
  await archived(gateway, 2, "archived_contents_total");
  expect(await metric(gateway, "archive_dropped_records_total")).toBe(0);
  expect(await metric(gateway, "archive_dropped_contents_total")).toBe(0);
  const [count] = await clickhouse.ask(
    "records",
    "select toUInt32(count()) as records from switchyard_generations",
  );
  expect(count).toEqual({ records: 5 } as never);
  expect(gateway.stderrText).not.toContain("word");
  expect(await gateway.terminate()).toBe(0);
}, 240_000);
