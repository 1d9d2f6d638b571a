import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  endProcesses,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt } from "../api/at.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { getJson, postChat } from "./support/ask.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";

const path = join(temporaryDirectory(), "gateway.yaml");
const replaced = "the catalog was replaced";

let upstream: FaultUpstream;
let gateway: GatewayProcess;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  writeFileSync(path, acmeYaml(upstream.baseUrl));
  gateway = await startProcess({ environment: { ...bootstrapVariables, SWITCHYARD_CONFIG: path } });
});
afterAll(async () => {
  await endProcesses();
  upstream.stop();
});

const priceOf = async (id: string): Promise<unknown> =>
  at(await getJson(gateway, `/models/${id}`), "pricing.input_per_1m");

test("SIGHUP reloads switchyard.yaml without a restart", async () => {
  expect(await priceOf("acme/large")).toBe(0.5);
  const more = '      - { id: acme/small, pricing: { prompt: "0.1", completion: "0.2" } }\n';
  writeFileSync(path, acmeYaml(upstream.baseUrl, more).replace('"0.50"', '"0.75"'));
  gateway.child.kill("SIGHUP");
  await gateway.stderrHas(replaced);
  expect([await priceOf("acme/large"), await priceOf("acme/small")]).toEqual([0.75, 0.1]);
  await gateway.stderrHas('"added":1,"removed":0,"repriced":1');
  const answer = await postChat(gateway, { model: "acme/small" });
  await answer.text();
  expect(answer.status).toBe(200);
});

test("an invalid file is logged and changes nothing", async () => {
  writeFileSync(path, acmeYaml(upstream.baseUrl).replace('"0.50"', '"cheap"'));
  gateway.child.kill("SIGHUP");
  await gateway.stderrHas("the catalog stays as it was");
  await gateway.stderrHas("providers[0].models[0].pricing.prompt");
  expect(await priceOf("acme/large")).toBe(0.75);
  expect(gateway.child.exitCode).toBeNull();
});

test("a file with facts that cannot be used is not listed either", async () => {
  const facts = join(temporaryDirectory(), "facts.json");
  writeFileSync(facts, "no facts");
  const late = `  - { id: late, base_url: "${upstream.baseUrl}", dialect: openai-chat }\n`;
  writeFileSync(path, acmeYaml(upstream.baseUrl, `${late}catalog: { facts: ${facts} }\n`));
  const refused = await fetch(`${gateway.url}/api/v1/admin/reload`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}` },
  });
  expect([refused.status, await refused.text()]).toEqual([
    409,
    expect.stringContaining("catalog.facts"),
  ]);
  const listed = await getJson(gateway, "/admin/configuration", testManagementKey);
  expect(listAt(listed, "data").map((entry) => at(entry, "id"))).toEqual(["acme"]);
});
