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
import { at, textAt } from "../../api/at.ts";

let gateway: TestGateway;
let upstreams: ContentUpstream[];

const server = (id: string, url: string, allowedTools: readonly string[] | null = null) => ({
  id,
  name: id,
  target: { transport: "streamable_http" as const, url },
  auth: { type: "none" as const },
  allowedTools,
  priceNanoUsd: 0n,
  timeoutMs: undefined,
  resultBytesMax: undefined,
});

beforeAll(async () => {
  upstreams = [
    startContentUpstream("first", "legacy"),
    startContentUpstream("second", "modern"),
    startContentUpstream("tools only", "modern"),
  ];
  const [first, second, third] = upstreams.map(({ url }) => url);
  gateway = await startGateway({
    mcp: {
      servers: [
        server("first", first ?? ""),
        server("second", second ?? ""),
        server("tools-only", third ?? "", ["read"]),
        server("dead", "http://127.0.0.1:1/mcp"),
      ],
      allowedNetworks: [],
      maxRounds: 4,
    },
  });
});
afterAll(async () => {
  await gateway.stop();
  for (const upstream of upstreams) await upstream.stop();
});

async function connect(
  path: string,
  {
    mode = "auto",
    headers = {},
    secret = testLlmKey,
  }: { mode?: "auto" | "legacy"; headers?: Record<string, string>; secret?: string } = {},
): Promise<Client> {
  const client = new Client({ name: "agent", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(gateway.origin + path), {
      requestInit: { headers: { authorization: `Bearer ${secret}`, ...headers } },
    }),
  );
  return client;
}

async function namesOf(client: Client) {
  const [{ prompts }, { resources }, { resourceTemplates }] = await Promise.all([
    client.listPrompts(),
    client.listResources(),
    client.listResourceTemplates(),
  ]);
  return {
    prompts: prompts.map(({ name }) => name),
    resources: resources.map(({ uri }) => uri),
    templates: resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  };
}

describe.each(["auto", "legacy"] as const)("an agent's client (%s)", (mode) => {
  test.each(["first", "second"])("uses prompts and resources of one server: %s", async (id) => {
    const client = await connect(`/mcp/${id}`, { mode });
    expect(await namesOf(client)).toEqual({
      prompts: ["explain"],
      resources: ["note://one"],
      templates: ["note://{id}/text"],
    });
    const prompt = await client.getPrompt({ name: "explain", arguments: { topic: "tides" } });
    expect(at(prompt, "messages.0.content.text")).toBe(`${id}: tides`);
    const read = await client.readResource({ uri: "note://a%20b/text" });
    expect(at(read, "contents.0.text")).toBe(`${id} has note://a%20b/text`);
    const completed = await client.complete({
      ref: { type: "ref/resource", uri: "note://{id}/text" },
      argument: { name: "id", value: "o" },
    });
    expect(completed.completion.values).toEqual(["ref/resource o"]);
    await client.close();
  });

  test("uses those of all servers by names and URIs that are mapped, although one is dead", async () => {
    const client = await connect("/mcp/all", { mode });
    expect(await namesOf(client)).toEqual({
      prompts: ["first__explain", "second__explain"],
      resources: ["mcp+first+note://one", "mcp+second+note://one"],
      templates: ["mcp+first+note://{id}/text", "mcp+second+note://{id}/text"],
    });
    const prompt = await client.getPrompt({
      name: "second__explain",
      arguments: { topic: "tides" },
    });
    expect(at(prompt, "messages.0.content.text")).toBe("second: tides");
    const uri = textAt(prompt, "messages.1.content.resource.uri");
    expect(uri).toBe("mcp+second+note://one");
    const read = await client.readResource({ uri });
    expect(read.contents).toMatchObject([{ uri, text: "second has note://one" }]);
    const called = await client.callTool({ name: "first__read", arguments: {} });
    expect(at(called, "content.0.uri")).toBe("mcp+first+note://one");
    const completed = await client.complete({
      ref: { type: "ref/prompt", name: "first__explain" },
      argument: { name: "topic", value: "ti" },
    });
    expect(completed.completion.values).toEqual(["ref/prompt ti"]);
    await client.close();
  });
});

test("a list names the servers that it is made of, and what is wrong with one", async () => {
  const client = await connect("/mcp/all");
  const { _meta: meta } = await client.listPrompts();
  const [states] = Object.entries(meta ?? {}).flatMap(([key, value]) =>
    key.endsWith("/servers") ? [value] : [],
  );
  expect(states).toMatchObject([
    { id: "first", status: "ready" },
    { id: "second", status: "ready" },
    { id: "dead", status: "unreachable", error: expect.any(String) },
  ]);
  await client.close();
});

test("what may not be listed cannot be asked for, and does not reach a server", async () => {
  const made = await fetch(`${gateway.baseUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "narrow", allowed_tools: ["first", "second/read"] }),
  });
  const secret = textAt(await made.json(), "key");
  const narrow = await connect("/mcp/all", { secret });
  expect((await namesOf(narrow)).prompts).toEqual(["first__explain"]);
  const [, second, third] = upstreams;
  const before = [second?.methods.length, third?.methods.length];
  const uris = ["mcp+second+note://one", "mcp+tools-only+note://one", "note://one", "mcp+none+x:y"];
  for (const uri of uris)
    await expect(narrow.readResource({ uri })).rejects.toThrow("There is no resource");
  for (const name of ["second__explain", "tools-only__explain", "explain", "first__none"])
    await expect(narrow.getPrompt({ name })).rejects.toThrow("There is no prompt");
  await narrow.close();
  const headed = await connect("/mcp/all", { headers: { "x-mcp-servers": "second" } });
  expect((await namesOf(headed)).resources).toEqual(["mcp+second+note://one"]);
  await headed.close();
  const only = await connect("/mcp/tools-only");
  expect(await namesOf(only)).toEqual({ prompts: [], resources: [], templates: [] });
  await expect(only.getPrompt({ name: "explain" })).rejects.toThrow("There is no prompt");
  await expect(only.readResource({ uri: "note://one" })).rejects.toThrow("There is no resource");
  await only.close();
  expect(before).toEqual([before[0], upstreams[2]?.methods.length]);
  expect(upstreams[2]?.methods).not.toContain("resources/read");
  expect(upstreams[2]?.methods).not.toContain("prompts/get");
});

test("a resource beyond the limit of its server is refused, and a server that is down too", async () => {
  const client = await connect("/mcp/second");
  await expect(client.readResource({ uri: "note://long" })).rejects.toThrow("result_bytes_max");
  await client.close();
  const dead = await connect("/mcp/dead");
  await expect(dead.readResource({ uri: "note://one" })).rejects.toThrow("did not answer");
  expect((await namesOf(dead)).prompts).toEqual([]);
  await dead.close();
});
