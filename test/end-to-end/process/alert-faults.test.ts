import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { alertNames, type FaultScrapes, testAlert } from "../../support/alert-firing.ts";
import { testLlmKey } from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { endProcesses, type GatewayProcess, startProcess } from "../../support/process.ts";
import { RawClient } from "../../support/raw-client.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatAnswer, healthyChat } from "../../support/upstream/healthy-chat.ts";
import { json } from "../../support/upstream/steps.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";

/**
 * Every alert of `deploy/prometheus` is shown to fire by the fault that it names: here, or in the
 * test of that fault.
 */
const tests = join(import.meta.dir, "..", "..", "..");

let upstream: FaultUpstream;
let gateway: GatewayProcess;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await start();
}, 240_000);
afterAll(async () => {
  await endProcesses();
  upstream.stop();
});

/** Starts a gateway whose balance does not cover one whole window of output. */
const start = (): Promise<GatewayProcess> =>
  startProcess({
    yaml: acmeYaml(upstream.baseUrl).replace('"1.50"', '"100"'),
    environment: bootstrapVariables,
  });

/** What Prometheus knows of a gateway after a scrape; a scrape that fails leaves `up` alone. */
const scrape = (): Promise<string> =>
  fetch(`${gateway.url}/metrics`).then(
    async (response) => `${await response.text()}\nup 1\n`,
    () => "up 0\n",
  );

const faults: Record<string, FaultScrapes> = {};

test("a provider fails", async () => {
  expect((await postChat(gateway)).status).toBe(200);
  const before = await scrape();
  upstream.script(json({ error: { message: "down" } }, { status: 500 }));
  for (let count = 0; count < 3; count += 1) await (await postChat(gateway)).text();
  faults["provider"] = { before, during: await scrape() };
});
testAlert("SwitchyardProviderFailing", () => faults["provider"]!, { goesOn: true });

test("settlements wait for the disk", async () => {
  upstream.script(healthyChat);
  const before = await scrape();
  const body = JSON.stringify({
    model: "acme/large",
    messages: [{ role: "user", content: "Hello" }],
    max_tokens: 5,
  });
  const request = [
    "POST /api/v1/chat/completions HTTP/1.1",
    "host: gateway",
    `authorization: Bearer ${testLlmKey}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
  using database = new Database(join(gateway.dataDirectory, "switchyard.db"));
  database.run("pragma busy_timeout = 5000");
  database.run("begin immediate");
  const clients = Array.from({ length: 1_100 }, () => new RawClient(gateway.port).write(request));
  await pollUntil(
    async () =>
      Number(/^switchyard_commit_queue_pending (\d+)$/m.exec(await scrape())?.[1]) > 1_000,
  );
  faults["waiting"] = { before, during: await scrape() };
  database.run("rollback");
  await Promise.all(clients.map((client) => client.untilOver()));
  faults["slow"] = { before, during: await scrape() };
});
testAlert("SwitchyardCommitsSlow", () => faults["waiting"]!);
testAlert("SwitchyardOverheadHigh", () => faults["slow"]!, { goesOn: true });

test("a provider reports more usage than the balance covers", async () => {
  const before = await scrape();
  const usage = { prompt_tokens: 20, completion_tokens: 1e10, total_tokens: 1e10 + 20 };
  upstream.script((request) => chatAnswer(request, { usage }));
  expect((await postChat(gateway, { max_tokens: 5 })).status).toBe(200);
  faults["uncollected"] = { before, during: await scrape() };
});
testAlert("SwitchyardUncollected", () => faults["uncollected"]!);

test("a gateway is killed", async () => {
  const before = await scrape();
  await gateway.kill9();
  faults["killed"] = { before, during: await scrape() };
  // Discovery no longer finds it.
  faults["gone"] = { before, during: "" };
});
testAlert("SwitchyardDown", () => faults["killed"]!);
testAlert("SwitchyardGone", () => faults["gone"]!);

test("no alert is without a fault that fires it", () => {
  const texts = ["src", "test"].flatMap((folder) =>
    readdirSync(join(tests, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".test.ts"))
      .map((path) => readFileSync(join(tests, folder, path), "utf8")),
  );
  const isShown = (name: string): boolean =>
    texts.some((text) => text.includes(`testAlert("${name}"`));
  expect(alertNames.filter((name) => !isShown(name))).toEqual([]);
});
