import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import {
  startMcpUpstream,
  textTool,
  type McpUpstream,
} from "../../support/mcp-upstream/mcp-upstream.ts";
import {
  endProcesses,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import {
  startScriptedUpstream,
  type ScriptedUpstream,
} from "../../support/scripted-upstream/scripted-upstream.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { getJson } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";

let models: ScriptedUpstream;
let tools: McpUpstream;
let gateway: GatewayProcess;
let dataDirectory = "";

const start = (): Promise<GatewayProcess> =>
  startProcess({
    dataDirectory,
    environment: bootstrapVariables,
    yaml: acmeYaml(
      models.baseUrl,
      `mcp_servers:\n  - { id: docs, url: "${tools.url}", price_per_call: "0.004" }\n`,
    ),
  });

beforeEach(async () => {
  models = await startScriptedUpstream();
  tools = startMcpUpstream([textTool("write_page")]);
  dataDirectory = temporaryDirectory();
  gateway = await start();
}, 240_000);
afterEach(async () => {
  await gateway.kill9();
  await models.stop();
  await tools.stop();
});
afterAll(endProcesses);

/** Asks a model that calls a tool in two rounds, and whose third round does not end. */
async function askUntilThirdRound(more: Record<string, unknown>): Promise<string | undefined> {
  const call = (id: string) => ({ calls: [{ id, name: "write_page", arguments: { text: id } }] });
  models.say(call("call_1"), call("call_2"));
  const third = models.gate();
  models.enqueue([third]);
  const asked = fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "acme/large",
      input: "Write two pages.",
      max_output_tokens: 50,
      tools: [{ type: "mcp", server_label: "docs", require_approval: "never" }],
      ...more,
    }),
  });
  const answer = asked.then((response) => response.json()).catch(() => undefined);
  await third.reached;
  expect(tools.calls.map(({ given }) => given["text"])).toEqual(["call_1", "call_2"]);
  return more["background"] === true ? textAt(await answer, "id") : undefined;
}

/** Kills the gateway, starts it again, and expects the books to hold two rounds and two calls. */
async function expectTwoRoundsCharged(): Promise<void> {
  await gateway.kill9();
  gateway = await start();
  const records = listAt(
    await getJson(gateway, "/analytics/generations?limit=50", testManagementKey),
    "data",
  );
  const completed = records.filter((record) => at(record, "status") === "completed");
  expect(completed.map((record) => at(record, "surface")).sort()).toEqual([
    "mcp",
    "mcp",
    "responses",
    "responses",
  ]);
  const sum = completed.reduce<number>((all, record) => all + Number(at(record, "total_cost")), 0);
  expect(sum).toBeGreaterThan(0.008);
  await pollUntil(async () => {
    const credits = await getJson(gateway, "/credits", testManagementKey);
    return Math.abs(Number(at(credits, "used")) - sum) < 1e-9;
  });
}

test("kill -9 in the third round charges two rounds and two calls", async () => {
  await askUntilThirdRound({});
  await expectTwoRoundsCharged();
}, 240_000);

test("a background response whose tools were called fails after a kill, and calls none again", async () => {
  const id = await askUntilThirdRound({ background: true });
  await expectTwoRoundsCharged();
  await pollUntil(async () => {
    const record = await getJson(gateway, `/responses/${id}`);
    return at(record, "status") === "failed";
  });
  const record = await getJson(gateway, `/responses/${id}`);
  expect(textAt(record, "error.message")).toContain("docs/write_page could be called twice");
  expect(tools.calls).toHaveLength(2);
}, 240_000);
