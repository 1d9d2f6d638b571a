import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../../support/gateway.ts";
import {
  startContentUpstream,
  type ContentUpstream,
} from "../../../support/mcp-upstream/content-upstream.ts";
import { pollUntil } from "../../../support/poll-until.ts";
import { textAt } from "../../api/at.ts";

const generations = ["legacy", "modern"] as const;
type Generation = (typeof generations)[number];

let gateway: TestGateway;
let upstreams: Record<Generation, ContentUpstream>;

beforeAll(async () => {
  upstreams = {
    legacy: startContentUpstream("old", "legacy"),
    modern: startContentUpstream("new", "modern"),
  };
  gateway = await startGateway({
    mcp: {
      servers: generations.map((id) => ({
        id,
        name: id,
        target: { transport: "streamable_http", url: upstreams[id].url },
        auth: { type: "none" },
        allowedTools: null,
        priceNanoUsd: 0n,
        timeoutMs: undefined,
        resultBytesMax: undefined,
      })),
      allowedNetworks: ["127.0.0.0/8"],
      maxRounds: 4,
    },
  });
});
afterAll(async () => {
  await gateway.stop();
  for (const upstream of Object.values(upstreams)) await upstream.stop();
});

/** Connects an agent that listens, and counts what it hears. */
async function listen(path: string, agent: Generation, secret = testLlmKey) {
  const heard = { tools: 0, prompts: 0, resources: 0 };
  const client = new Client(
    { name: "agent", version: "1" },
    { versionNegotiation: { mode: agent === "legacy" ? "legacy" : "auto" } },
  );
  for (const kind of ["tools", "prompts", "resources"] as const)
    client.setNotificationHandler(`notifications/${kind}/list_changed`, () => {
      heard[kind] += 1;
    });
  const streamed = Promise.withResolvers<void>();
  await client.connect(
    new StreamableHTTPClientTransport(new URL(gateway.origin + path), {
      requestInit: { headers: { authorization: `Bearer ${secret}` } },
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        if (init?.method === "GET") streamed.resolve();
        return answer;
      },
    }),
  );
  if (agent === "legacy") await streamed.promise;
  const wanted = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  if (agent === "modern") expect((await client.listen(wanted)).honoredFilter).toEqual(wanted);
  await client.listTools();
  return { client, heard };
}

async function account(method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(gateway.baseUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${testManagementKey}`,
      "content-type": "application/json",
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

test("a change is heard of by those alone that may see the server", async () => {
  const narrow = textAt(
    await account("POST", "/keys", { name: "narrow", allowed_tools: ["modern"] }),
    "key",
  );
  const [wide, other] = await Promise.all([
    listen("/mcp/all", "legacy"),
    listen("/mcp/all", "legacy", narrow),
  ]);
  await account("POST", "/mcp-servers", { id: "own", url: upstreams.legacy.url });
  await pollUntil(() => wide.heard.tools > 0);
  upstreams.modern.tools.push("for_both");
  await pollUntil(async () => {
    await upstreams.modern.say("tools");
    return other.heard.tools > 0;
  });
  expect(other.heard).toEqual({ tools: 1, prompts: 0, resources: 0 });
  await account("DELETE", "/mcp-servers/own");
  await pollUntil(() => wide.heard.resources > 1);
  for (const { client } of [wide, other]) await client.close();
});

describe.each(generations)("a server (%s) whose lists change", (server) => {
  test.each(generations)("is heard of by agents (%s) of it and of all servers", async (agent) => {
    const upstream = upstreams[server];
    const agents = await Promise.all(
      [`/mcp/${server}`, "/mcp/all"].map((path) => listen(path, agent)),
    );
    const tool = `added_for_${agent}`;
    upstream.tools.push(tool);
    upstream.prompts.push(tool);
    for (const { client, heard } of agents) {
      // What is said before the gateway listens is heard by no one.
      await pollUntil(async () => {
        for (const kind of ["tools", "prompts"] as const) await upstream.say(kind);
        return heard.tools > 0 && heard.prompts > 0;
      });
      expect(heard.resources).toBe(0);
      expect((await client.listTools()).tools.map(({ name }) => name)).toContainEqual(
        expect.stringMatching(new RegExp(`${tool}$`)),
      );
      expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContainEqual(
        expect.stringMatching(new RegExp(`${tool}$`)),
      );
      await client.close();
    }
  });
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.origin + path, {
    headers: {
      authorization: `Bearer ${testLlmKey}`,
      accept: "text/event-stream",
      ...headers,
    },
  });

test.each([
  ["a request for no stream", "/mcp/all", { accept: "application/json" }, 405],
  [
    "a client that listens with a request",
    "/mcp/all",
    { "mcp-protocol-version": "2026-07-28" },
    405,
  ],
  ["a server that is not there", "/mcp/none", {}, 404],
  ["no credential", "/mcp/all", { authorization: "" }, 401],
  ["a page of another site", "/mcp/all", { origin: "https://evil.example" }, 403],
])("%s is refused", async (_, path, headers, status) => {
  const refused = await get(path, headers);
  expect(refused.status).toBe(status);
  expect(await refused.json()).toMatchObject({ jsonrpc: "2.0", id: null });
});

test("HEAD opens no stream", async () => {
  const headers = { authorization: `Bearer ${testLlmKey}`, accept: "text/event-stream" };
  const answer = await fetch(`${gateway.origin}/mcp/all`, { method: "HEAD", headers });
  expect(answer.status).toBe(405);
});

test("a credential has 32 streams at once, and a draining gateway ends them", async () => {
  const secret = textAt(await account("POST", "/keys", { name: "many" }), "key");
  const headers = { authorization: `Bearer ${secret}` };
  const opened = await Promise.all(Array.from({ length: 40 }, () => get("/mcp/all", headers)));
  const statuses = opened.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(32);
  expect(statuses.filter((status) => status === 429)).toHaveLength(8);
  const streams = opened.filter(({ status }) => status === 200);
  const [first, ...others] = streams;
  await first?.body?.cancel();
  await pollUntil(async () => {
    const again = await get("/mcp/all", headers);
    if (again.status === 200) others.push(again);
    return again.status === 200;
  });
  gateway.app.startDraining();
  for (const stream of others) expect(await stream.text()).toStartWith(": open");
  expect((await get("/mcp/all")).status).toBe(503);
});
