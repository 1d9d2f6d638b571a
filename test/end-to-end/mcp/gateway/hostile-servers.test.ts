import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { startGateway, testLlmKey, type TestGateway } from "../../../support/gateway.ts";
import {
  startMcpUpstream,
  textTool,
  type McpUpstream,
} from "../../../support/mcp-upstream/mcp-upstream.ts";
import { at } from "../../api/at.ts";

let gateway: TestGateway;
let upstream: McpUpstream;
let redirecting: ReturnType<typeof Bun.serve>;
let endless: ReturnType<typeof Bun.serve>;
let internalCalls = 0;
let endlessBytes = 0;
const many = Array.from({ length: 100 }, (_, index) => `many-${index}`);

const server = (id: string, url: string, changes: Record<string, unknown> = {}) => ({
  id,
  name: id,
  target: { transport: "streamable_http" as const, url },
  auth: { type: "none" as const },
  allowedTools: null,
  priceNanoUsd: 0n,
  timeoutMs: 60_000,
  resultBytesMax: 2_048,
  ...changes,
});

beforeAll(async () => {
  upstream = startMcpUpstream([
    textTool("large", () => "ä".repeat(100_000)),
    textTool("huge", () => "x".repeat(20 * 1024 * 1024)),
    textTool("slow", () => new Promise<string>(() => undefined)),
    ...Array.from({ length: 47 }, (_, index) => textTool(`tool_${index}`)),
    textTool("n".repeat(90)),
    textTool("dotted.name"),
  ]);
  redirecting = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname, origin } = new URL(request.url);
      if (pathname !== "/internal") return Response.redirect(`${origin}/internal`, 307);
      internalCalls += 1;
      return new Response("secrets");
    },
  });
  const piece = new Uint8Array(1024 * 1024).fill(0x20);
  endless = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            endlessBytes += piece.length;
            if (endlessBytes > 1024 ** 3) controller.close();
            else controller.enqueue(piece);
          },
        }),
        { headers: { "content-type": "application/json" } },
      ),
  });
  gateway = await startGateway({
    mcp: {
      servers: [
        server("s", upstream.url),
        server("hasty", upstream.url, { timeoutMs: 200 }),
        server("r", `http://127.0.0.1:${redirecting.port}/mcp`),
        server("endless", `http://127.0.0.1:${endless.port}/mcp`),
        server("closed", upstream.url, { allowedTools: [] }),
        ...many.map((id) => server(id, upstream.url)),
      ],
      allowedNetworks: [],
      maxRounds: 4,
    },
  });
}, 240_000);
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
  await redirecting.stop(true);
  await endless.stop(true);
});

async function connect(path: string, tools?: string): Promise<Client> {
  const client = new Client({ name: "agent", version: "1" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(gateway.origin + path), {
      requestInit: {
        headers: {
          authorization: `Bearer ${testLlmKey}`,
          ...(tools !== undefined && { "X-Service-MCP-Tools": tools }),
        },
      },
    }),
  );
  return client;
}

test("a long result is cut with a notice, a huge one and a slow one are errors", async () => {
  const client = await connect("/mcp/s");
  const large = await client.callTool({ name: "large", arguments: {} });
  expect(JSON.stringify(large).length).toBeLessThan(3_000);
  expect(at(large, "content.1.text")).toStartWith("[The result was cut to 2048 bytes" as never);
  expect(String(at(large, "content.0.text"))).not.toContain("\uFFFD");
  expect(await client.callTool({ name: "huge", arguments: {} })).toMatchObject({ isError: true });
  await client.close();
  const hasty = await connect("/mcp/hasty");
  expect(await hasty.callTool({ name: "slow", arguments: {} })).toMatchObject({ isError: true });
  await hasty.close();
});

test("an answer of 1 GB is given up after a part of it, and other servers go on", async () => {
  const client = await connect("/mcp/endless");
  expect((await client.listTools()).tools).toEqual([]);
  expect(endlessBytes).toBeGreaterThan(0);
  expect(endlessBytes).toBeLessThan(256 * 1024 * 1024);
  await client.close();
  const other = await connect("/mcp/s");
  expect((await other.listTools()).tools.length).toBeGreaterThan(50);
  await other.close();
}, 240_000);

test("a redirect is not followed", async () => {
  const client = await connect("/mcp/r");
  expect((await client.listTools()).tools).toEqual([]);
  expect(internalCalls).toBe(0);
  await client.close();
});

test("names fit models, are distinct, and what is not listed is not callable", async () => {
  const client = await connect("/mcp/all", "s,closed");
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toHaveLength(52);
  expect(new Set(names).size).toBe(52);
  expect(names.filter((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name))).toEqual([]);
  const before = upstream.calls.length;
  const parts = ["s", "closed", "r", "tool_1", "large", "", "..", "%2e", "S", "dotted.name"];
  const joints = ["__", "_", "-", "/", ".", ":", "\n", "__s__"];
  const forged = parts.flatMap((left) =>
    joints.flatMap((joint) => parts.map((right) => `${left}${joint}${right}`)),
  );
  const unlisted = forged.filter((name) => !names.includes(name));
  expect(unlisted.length).toBeGreaterThan(700);
  // As many as the window of calls admits in a minute.
  for (const name of unlisted.slice(0, 80))
    await expect(client.callTool({ name, arguments: {} })).rejects.toThrow();
  expect(upstream.calls.length).toBe(before);
  await client.close();
});

test("a hundred servers with fifty tools are listed without asking them once they were read", async () => {
  const client = await connect("/mcp/all", many.join(","));
  expect((await client.listTools()).tools).toHaveLength(5_200);
  const listings = () => upstream.requests.filter(({ method }) => method === "tools/list").length;
  const before = listings();
  expect((await client.listTools()).tools).toHaveLength(5_200);
  expect(listings()).toBe(before);
  await client.close();
}, 240_000);
