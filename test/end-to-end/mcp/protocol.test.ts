import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { at } from "../api/at.ts";
import { rpc, sendMcp } from "./mcp-client.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sandbox: true,
    trustProxy: true,
    publicUrl: () => "https://gateway.example",
  });
});
afterAll(() => gateway.stop());

const bases = ["/mcp", "/v1/mcp", "/api/v1/mcp"] as const;
const secret = testManagementKey;
const url = (path: string = "/mcp"): string => gateway.origin + path;

const modernMeta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** A request of the revision 2026-07-28. */
const modern = (
  method: string,
  {
    params = {},
    headers = {},
  }: { params?: Record<string, unknown>; headers?: Record<string, string> } = {},
) =>
  sendMcp(url(), rpc(method, { ...params, _meta: modernMeta }), {
    secret,
    headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...headers },
  });

describe.each(bases)("%s", (path) => {
  test("a missing or expired credential returns 401 with the authorization metadata", async () => {
    const metadata = `https://gateway.example/.well-known/oauth-protected-resource${path}`;
    for (const [sent, challenge] of [
      [undefined, `Bearer resource_metadata="${metadata}"`],
      [
        "sk-svc-at-expired0123456789abcdef0123456789",
        `Bearer resource_metadata="${metadata}", error="invalid_token"`,
      ],
    ] as const) {
      const { status, body, headers } = await sendMcp(url(path), rpc("tools/list"), {
        secret: sent,
      });
      expect([status, body]).toEqual([
        401,
        { jsonrpc: "2.0", error: { code: -32001, message: "Unauthorized" }, id: null },
      ]);
      expect(headers.get("www-authenticate")).toBe(challenge);
    }
    const described = await fetch(gateway.origin + new URL(metadata).pathname);
    expect(await described.json()).toMatchObject({ resource: `https://gateway.example${path}` });
  });

  test("GET and DELETE return 405, since there are no sessions or server streams", async () => {
    for (const method of ["GET", "DELETE"]) {
      const response = await fetch(url(path), {
        method,
        headers: { authorization: `Bearer ${secret}` },
      });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
    }
  });

  test("protocol 2025-06-18: initialize without a session, then tools", async () => {
    const started = await sendMcp(
      url(path),
      rpc("initialize", {
        protocolVersion: "2025-06-18",
        capabilities: {},
        clientInfo: { name: "test", version: "1" },
      }),
      { secret },
    );
    expect(at(started.body, "result")).toMatchObject({
      protocolVersion: "2025-06-18",
      serverInfo: { name: "switchyard" },
    });
    expect(started.headers.get("mcp-session-id")).toBeNull();
    const told = await sendMcp(
      url(path),
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { secret },
    );
    expect(told.status).toBe(202);
    expect((await sendMcp(url(path), rpc("ping"), { secret })).body).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: {},
    });
  });
});

describe("protocol 2026-07-28", () => {
  test("discovers the server and calls tools without initialize", async () => {
    const discovered = await modern("server/discover");
    expect(discovered.status).toBe(200);
    expect(at(discovered.body, "result.supportedVersions")).toContain("2026-07-28");
    const name = "get_system_status";
    const called = await modern("tools/call", {
      params: { name, arguments: {} },
      headers: { "mcp-name": name },
    });
    expect(at(called.body, "result.structuredContent")).toMatchObject({
      status: expect.any(String),
    });
  });

  test("requires headers that match the body and metadata, and returns 404 for unknown methods", async () => {
    const mismatched = await modern("tools/list", { headers: { "mcp-method": "tools/call" } });
    expect([mismatched.status, at(mismatched.body, "error.code")]).toEqual([400, -32020]);
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };
    const bare = await sendMcp(url(), rpc("tools/list"), { secret, headers });
    expect([bare.status, at(bare.body, "error.code")]).toEqual([400, -32602]);
    const unknown = await modern("no/such/method");
    expect([unknown.status, at(unknown.body, "error.code")]).toEqual([404, -32601]);
  });
});

test("invalid JSON returns a parse error, and an oversized body 413", async () => {
  const broken = await sendMcp(url(), "{", { secret });
  expect([broken.status, at(broken.body, "error.code"), at(broken.body, "id")]).toEqual([
    400,
    -32700,
    null,
  ]);
  const large = await sendMcp(
    url(),
    JSON.stringify(rpc("tools/list", { fill: "x".repeat(5_000_000) })),
    { secret },
  );
  expect([large.status, at(large.body, "error.code")]).toEqual([413, -32600]);
});

describe("origins of requests", () => {
  const from = (headers: Record<string, string>) =>
    sendMcp(url(), rpc("ping"), { secret, headers });

  test.each<[headers: Record<string, string>, status: number]>([
    [{ origin: "https://gateway.example" }, 200],
    [{ origin: "http://localhost:6274" }, 200],
    [{ origin: "http://evil.example" }, 403],
    [{ origin: "null" }, 403],
    [{ host: "evil.example" }, 403],
    [{ host: "gateway.example" }, 200],
    [{ "x-forwarded-for": "203.0.113.7" }, 403],
    [{ "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "http" }, 403],
    [{ "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" }, 200],
    [
      {
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-proto": "https",
        host: "other-name.example",
      },
      200,
    ],
  ])("%j returns %p", async (headers, status) => {
    const answer = await from(headers);
    expect(answer.status).toBe(status);
    if (status === 403) expect(at(answer.body, "error.code")).toBe(-32000);
  });
});

describe("rate limits", () => {
  const address = (last: number): Record<string, string> => ({
    "x-forwarded-for": `203.0.113.${last}`,
    "x-forwarded-proto": "https",
  });

  test("300 requests a minute per address, counted before authentication", async () => {
    const answers = await Promise.all(
      Array.from({ length: 301 }, () => sendMcp(url(), rpc("ping"), { headers: address(1) })),
    );
    expect(
      answers
        .map(({ status }) => status)
        .sort()
        .slice(-2),
    ).toEqual([401, 429]);
    const last = answers.find(({ status }) => status === 429);
    const error = { code: -32000, message: expect.stringContaining("Retry after 60") };
    expect(last?.body).toMatchObject({ jsonrpc: "2.0", error, id: null });
    expect(last?.headers.get("retry-after")).toBe("60");
    expect((await sendMcp(url(), rpc("ping"), { headers: address(2) })).status).toBe(401);
  });

  test("120 tool calls a minute per credential, counted separately from other requests", async () => {
    const call = () =>
      sendMcp(url(), rpc("tools/call", { name: "get_system_status" }), {
        secret: testLlmKey,
        headers: address(3),
      });
    const answers = await Promise.all(Array.from({ length: 121 }, call));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(120);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.map(({ headers }) => headers.get("x-ratelimit-tier"))).toEqual(["mcp"]);
    expect(refused.map(({ headers }) => headers.get("x-ratelimit-limit"))).toEqual(["120"]);
    expect(
      (await sendMcp(url(), rpc("tools/list"), { secret: testLlmKey, headers: address(3) })).status,
    ).toBe(200);
    expect((await gateway.get("/credits")).status).toBe(200);
  });
});
