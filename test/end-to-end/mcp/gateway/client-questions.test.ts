import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../../support/gateway.ts";
import {
  startAskingUpstream,
  type AskingUpstream,
} from "../../../support/mcp-upstream/asking-upstream.ts";
import { ServedRequest } from "../../../../src/http/served-request.ts";
import { pollUntil } from "../../../support/poll-until.ts";
import { at } from "../../api/at.ts";

const generations = ["legacy", "modern"] as const;
type Generation = (typeof generations)[number];

let gateway: TestGateway;
const upstreams: Partial<Record<Generation, AskingUpstream>> = {};

beforeAll(async () => {
  for (const generation of generations) upstreams[generation] = startAskingUpstream(generation);
  gateway = await startGateway({
    mcp: {
      servers: generations.map((id) => ({
        id,
        name: id,
        target: { transport: "streamable_http", url: upstreams[id]?.url ?? "" },
        auth: { type: "none" },
        allowedTools: null,
        priceNanoUsd: 1_000_000n,
        timeoutMs: 60_000,
        resultBytesMax: undefined,
      })),
      allowedNetworks: [],
      maxRounds: 4,
    },
  });
}, 240_000);
afterAll(async () => {
  await gateway.stop();
  for (const upstream of Object.values(upstreams)) await upstream.stop();
});

/** Connects an agent of a generation, which says who it is where it is asked. */
async function connect(
  server: Generation,
  {
    agent,
    name = "Olga",
    capabilities = { elicitation: { form: {} }, sampling: {} },
  }: { agent: Generation; name?: string; capabilities?: Record<string, object> },
) {
  const logged: unknown[] = [];
  const client = new Client(
    { name: "agent", version: "1" },
    { capabilities, versionNegotiation: { mode: agent === "legacy" ? "legacy" : "auto" } },
  );
  if (capabilities["elicitation"])
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      expect(params.message).toBe("Who are you?");
      await Bun.sleep(1);
      return { action: "accept", content: { name } };
    });
  if (capabilities["sampling"])
    client.setRequestHandler("sampling/createMessage", () => ({
      role: "assistant",
      model: "own",
      content: { type: "text", text: `${name} thinks so` },
    }));
  client.setNotificationHandler("notifications/message", ({ params }) => void logged.push(params));
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${gateway.origin}/mcp/${server}`), {
      requestInit: { headers: { authorization: `Bearer ${testLlmKey}` } },
    }),
  );
  return { client, logged };
}

const textOf = (result: unknown): string => String(at(result, "content.0.text"));

describe.each(generations)("a server (%s)", (server) => {
  test.each(generations)(
    "asks an agent (%s), and each agent answers its own call",
    async (agent) => {
      const agents = await Promise.all(
        ["Olga", "Ben", "Ida"].map(async (name) => ({
          name,
          ...(await connect(server, { agent, name })),
        })),
      );
      const answers = await Promise.all(
        agents.flatMap(({ client }) => [
          client.callTool({ name: "name", arguments: {} }),
          client.callTool({ name: "opinion", arguments: {} }),
        ]),
      );
      expect(answers.map(textOf)).toEqual(
        agents.flatMap(({ name }) => [
          `hello ${name}`,
          JSON.stringify({ type: "text", text: `${name} thinks so` }),
        ]),
      );
      for (const { client } of agents) await client.close();
    },
  );

  test.each(generations)("sends its log messages to an agent (%s)", async (agent) => {
    const { client, logged } = await connect(server, { agent });
    if (agent === "legacy") await client.setLoggingLevel("info");
    const meta = { _meta: { "io.modelcontextprotocol/logLevel": "info" } };
    await client.callTool({ name: "log", arguments: {}, ...(agent === "modern" && meta) });
    if (server === agent)
      expect(logged).toEqual([
        { level: "warning", data: "the disk is nearly full", logger: "disk" },
      ]);
    await client.close();
  });

  test.each(generations)("fails for an agent (%s) that cannot be asked", async (agent) => {
    const { client } = await connect(server, { agent, capabilities: {} });
    const outcome = await client.callTool({ name: "name", arguments: {} }).then(
      ({ isError }) => isError === true,
      () => true,
    );
    expect(outcome).toBe(true);
    await client.close();
  });
});

test("a server that says its tools have changed is read again", async () => {
  const { client } = await connect("legacy", { agent: "legacy" });
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  expect(await names()).toEqual(["name", "opinion", "log"]);
  using idle = spyOn(ServedRequest.prototype, "setIdleSeconds");
  await client.callTool({ name: "log", arguments: { extend: true } });
  // A tool, or a person who is asked, may take longer than a connection between requests.
  expect(idle.mock.calls.flat().slice(0, 3)).toEqual([0, 75, 0]);
  await pollUntil(async () => (await names()).includes("more"));
  await client.close();
});

test("a call that was asked about is charged once", async () => {
  const before = await gateway.get("/credits").then((answer) => answer.json());
  const { client } = await connect("legacy", { agent: "modern" });
  expect(textOf(await client.callTool({ name: "name", arguments: {} }))).toBe("hello Olga");
  await client.close();
  const after = await gateway.get("/credits").then((answer) => answer.json());
  expect(Number(at(after, "used")) - Number(at(before, "used"))).toBeCloseTo(0.001, 9);
});

test("the state of another key's call, and one that was used, are refused", async () => {
  const send = async (params: object, key = testLlmKey) => {
    const answer = await fetch(`${gateway.origin}/mcp/modern`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "name",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          name: "name",
          arguments: {},
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
            "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
          },
          ...params,
        },
      }),
    });
    const body = await answer.text();
    return JSON.parse(body.slice(body.indexOf("{"))) as unknown;
  };
  const asked = await send({});
  expect(asked).toMatchObject({ result: { resultType: "input_required" } });
  const [name = ""] = Object.keys(Object(at(asked, "result.inputRequests")));
  const answer = {
    inputResponses: { [name]: { action: "accept", content: { name: "Eve" } } },
    requestState: String(at(asked, "result.requestState")),
  };
  expect(await send(answer, testManagementKey)).toMatchObject({ error: { code: -32602 } });
  expect(await send(answer)).toMatchObject({ result: { content: [{ text: "hello Eve" }] } });
  expect(await send(answer)).toMatchObject({ error: { code: -32602 } });
});
