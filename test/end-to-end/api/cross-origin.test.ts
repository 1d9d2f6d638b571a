import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";

let gateway: TestGateway;
let upstream: FaultUpstream;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  upstream.script(healthyChat);
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const origin = "https://app.example";
const preflight = (path: string, method: string): Promise<Response> =>
  fetch(gateway.origin + path, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": method,
      "access-control-request-headers": "authorization,content-type,x-stainless-os",
    },
  });
const corsOf = ({ headers }: Response): (string | null)[] =>
  ["access-control-allow-origin", "access-control-allow-credentials"].map((name) =>
    headers.get(name),
  );

describe("a page of another origin", () => {
  test.each([
    ["/v1/chat/completions", "POST"],
    ["/api/v1/messages", "POST"],
    ["/v1/responses", "POST"],
    ["/v1/responses/resp_1", "DELETE"],
    ["/v1/embeddings/", "POST"],
    ["/v2/rerank", "POST"],
    ["/v1/models", "GET"],
    ["/v1/generation", "GET"],
    ["/v1/health", "GET"],
    ["/api/v1/auth/keys", "POST"],
    ["/api/v1/auth/keys/code", "POST"],
    ["/v1/oauth/device/code", "POST"],
    ["/v1/oauth/token", "POST"],
    ["/v1/mcp/oauth/register", "POST"],
    ["/v1/mcp/oauth/token", "POST"],
    ["/v1/mcp/oauth/revoke", "POST"],
    ["/.well-known/oauth-authorization-server", "GET"],
    ["/.well-known/oauth-protected-resource/mcp", "GET"],
  ])("may call %s by %s, with any headers and without cookies", async (path, method) => {
    const response = await preflight(path, method);
    expect([response.status, ...corsOf(response)]).toEqual([204, "*", null]);
    expect(response.headers.get("access-control-allow-methods")?.split(", ")).toContain(method);
    expect(response.headers.get("access-control-allow-headers")).toBe(
      "authorization,content-type,x-stainless-os",
    );
    expect(response.headers.get("ratelimit-policy")).toMatch(/;w=60$/);
  });

  test.each([
    ["/v1/keys", "POST"],
    ["/v1/credits", "GET"],
    ["/api/auth/sign-in/email", "POST"],
    ["/api/auth/sign-out", "POST"],
    ["/claim", "POST"],
    ["/v1/workspaces", "GET"],
    ["/healthz", "GET"],
    ["/api/v1/mcp/oauth/authorize", "GET"],
    ["/auth", "GET"],
    ["/device", "POST"],
    ["/v1/connections", "GET"],
  ])("may not call %s by %s", async (path, method) => {
    expect(corsOf(await preflight(path, method))).toEqual([null, null]);
    expect(corsOf(await fetch(gateway.origin + path, { method, headers: { origin } }))).toEqual([
      null,
      null,
    ]);
  });

  test("can read responses, streams and errors of inference with all of their headers", async () => {
    const body = { model: "acme/large", messages: [{ role: "user", content: "Hello" }] };
    for (const sent of [body, { ...body, stream: true }, { ...body, model: "no/model" }]) {
      const response = await gateway.post("/chat/completions", sent, { headers: { origin } });
      await response.text();
      expect([...corsOf(response), response.headers.get("access-control-expose-headers")]).toEqual([
        "*",
        null,
        "*",
      ]);
    }
  });
});

test.each([
  "/chat/completions",
  "/messages",
  "/messages/count_tokens",
  "/responses",
  "/embeddings",
  "/rerank",
  "/moderations",
  "/decisions",
])("POST %s/ is the same as without the slash", async (path) => {
  const [plain, slashed] = await Promise.all([
    gateway.post(path, "{}"),
    gateway.post(`${path}/`, "{}"),
  ]);
  expect(slashed.status).toBe(plain.status);
  expect(slashed.status).not.toBe(404);
});

test.each([
  ["/docs/", "/docs"],
  ["/docs/start/quickstart/", "/docs/start/quickstart"],
  ["/sign-in/?return_to=%2Fkeys", "/sign-in?return_to=%2Fkeys"],
  ["/status/", "/status"],
  ["/catalog//", "/catalog"],
  ["/healthz/", "/healthz"],
  ["/.well-known/oauth-protected-resource/", "/.well-known/oauth-protected-resource"],
])("GET %s leads to %s", async (slashed, plain) => {
  const answer = await fetch(gateway.origin + slashed, { redirect: "manual" });
  expect([answer.status, answer.headers.get("location")]).toEqual([308, plain]);
  expect(answer.headers.get("ratelimit-policy")).toMatch(/;w=60$/);
  expect((await fetch(gateway.origin + plain)).status).toBe(200);
});

test("GET /docs/guides leads to the first page of the section", async () => {
  const answer = await fetch(`${gateway.origin}/docs/guides`, { redirect: "manual" });
  expect(answer.status).toBe(303);
  expect(answer.headers.get("location")).toBe("/docs/guides/openai-sdk");
});

test.each([
  ["GET", "/nowhere/"],
  ["GET", "/api/v1/models/"],
  ["GET", "/v1/providers/"],
  ["POST", "/sign-in/"],
  ["GET", "/docs/start/quickstart/more/"],
])("%s %s leads nowhere", async (method, path) => {
  const { status } = await fetch(gateway.origin + path, { method, redirect: "manual" });
  expect(status).toBe(404);
});

test.each(["/healthz", "/readyz", "/metrics"])(
  "%s carries the rate limit headers",
  async (path) => {
    const { status, headers } = await fetch(gateway.origin + path);
    expect(status).toBe(200);
    expect(headers.get("x-ratelimit-window")).toBe("60");
    expect(headers.get("ratelimit-limit")).toBe(headers.get("x-ratelimit-limit"));
    expect(headers.get("ratelimit-policy")).toBe(`${headers.get("x-ratelimit-limit")};w=60`);
  },
);
