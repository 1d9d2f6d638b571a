import { afterAll, beforeAll, expect, test } from "bun:test";
import { acme, startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, textAt } from "./at.ts";
import { bootstrapWith } from "./bootstrap-with.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
let poorGateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
  poorGateway = await startGateway({
    providers: [acme(upstream.baseUrl)],
    bootstrap: bootstrapWith({ creditsNanoUsd: 0n }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await poorGateway.stop();
  upstream.stop();
});

const chat = (fields: Record<string, unknown> = {}): Promise<Response> =>
  gateway.post("/chat/completions", chatRequest(fields));

const unknownKey = "Bearer sk-svc-v1-nobodynobodynobodynobodynobody";
test.each(["", unknownKey])(
  "401 for %p names the wanted scheme in www-authenticate",
  async (authorization) => {
    const response = await fetch(`${gateway.baseUrl}/chat/completions`, {
      method: "POST",
      body: "{}",
      headers: { authorization },
    });
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  },
);

test("a client with another base URL, or with a provider's key, is shown the way", async () => {
  for (const [path, meant] of [
    ["/chat/completions", "/v1/chat/completions"],
    ["/v1/v1/messages", "/v1/messages"],
  ]) {
    const lost = await fetch(gateway.origin + path, { method: "POST", body: "{}" });
    expect(lost.status).toBe(404);
    expect(at(await lost.json(), "error.message")).toContain(`Did you mean ${meant}?`);
  }
  for (const [authorization, words] of [
    ["Bearer sk-proj-abcdefabcdef", "begin with sk-svc-"],
    [unknownKey, "expired."],
    ["Bearer ", "has no key"],
    ["sk-svc-v1-without-bearer", "has no key"],
  ] as const) {
    const error = await errorOf(
      await fetch(`${gateway.baseUrl}/chat/completions`, {
        method: "POST",
        body: "{}",
        headers: { authorization },
      }),
    );
    expect([authorization, error.status, error.code]).toEqual([
      authorization,
      401,
      "invalid_api_key",
    ]);
    expect(error.message).toContain(words);
  }
});

test("an unknown model returns 404 that names the model", async () => {
  const error = await errorOf(await chat({ model: "acme/unknown" }));
  expect(error).toMatchObject({
    status: 404,
    code: "model_unavailable",
    type: "not_found_error",
    param: "model",
  });
  expect(error.message).toContain("acme/unknown");
  expect(error.headers.get("x-should-retry")).toBe("false");
});

test("a very long model id returns 404 without repeating the id", async () => {
  const error = await errorOf(await chat({ model: "x".repeat(100_000) }));
  expect(error).toMatchObject({ status: 404, code: "model_unavailable", param: "model" });
  expect(error.message.length).toBeLessThan(200);
});

test("an unknown fallback model returns 404 too", async () => {
  expect(await errorOf(await chat({ models: ["acme/unknown"] }))).toMatchObject({
    status: 404,
    code: "model_unavailable",
  });
});

test("a model without an eligible route returns 404 that names the rule", async () => {
  const error = await errorOf(await chat({ provider: { only: ["other"] } }));
  expect(error).toMatchObject({ status: 404, code: "no_upstream", type: "not_found_error" });
  expect(at(error.metadata, "left_out.0")).toEqual({ provider: "acme", rule: "only" });
});

test("no credits returns 402, and nothing is sent upstream", async () => {
  const sentBefore = upstream.requests.length;
  const error = await errorOf(await poorGateway.post("/chat/completions", chatRequest()));
  expect(error).toMatchObject({ status: 402, code: "insufficient_balance", type: "payment" });
  expect(error.headers.get("x-should-retry")).toBe("false");
  expect(upstream.requests.length).toBe(sentBefore);
});

test("a model outside the key's allowed_models returns 403", async () => {
  const created = await gateway.post(
    "/keys",
    { name: "narrow", allowed_models: ["acme/other"] },
    {
      headers: { authorization: `Bearer ${testManagementKey}` },
    },
  );
  const key = textAt(await created.json(), "key");
  const refused = await gateway.post("/chat/completions", chatRequest(), {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(await errorOf(refused)).toMatchObject({
    status: 403,
    code: "forbidden",
    type: "permission_error",
    param: "model",
  });
});

/** What a lone upstream answers, what the gateway answers then, and whether a retry may help. */
const upstreamAnswers = [
  [400, { status: 400, code: "bad_request", type: "invalid_request_error" }, false],
  [401, { status: 502, code: "upstream_401", type: "upstream_error" }, false],
  [403, { status: 502, code: "upstream_403", type: "upstream_error" }, false],
  [404, { status: 404, code: "model_unavailable", type: "not_found_error" }, false],
  [408, { status: 408, code: "request_timeout", type: "request_timeout" }, true],
  [413, { status: 413, code: "content_too_large", type: "request_too_large" }, false],
  [422, { status: 422, code: "unprocessable_entity", type: "invalid_request_error" }, false],
  [429, { status: 429, code: "rate_limit_exceeded", type: "rate_limit_error" }, true],
  [500, { status: 502, code: "upstream_error", type: "upstream_error" }, true],
  [503, { status: 502, code: "upstream_error", type: "upstream_error" }, true],
  [504, { status: 504, code: "upstream_timeout", type: "upstream_timeout" }, true],
] as const;

test.each(upstreamAnswers)(
  "an upstream %d is relayed with its message and the provider's name",
  async (status, wanted, retry) => {
    upstream.enqueue(json(chatError(`refused with ${status}`), { status }));
    const error = await errorOf(await chat());
    expect(error).toMatchObject(wanted);
    expect(error.metadata).toMatchObject({
      fault: "upstream",
      upstream_backend: "acme",
      upstream_status: status,
      upstream_message: `refused with ${status}`,
    });
    expect(error.message).toContain(`refused with ${status}`);
    expect(error.headers.get("x-should-retry")).toBe(retry ? null : "false");
  },
);

test("every 429 has Retry-After, from the upstream if it sent one", async () => {
  upstream.enqueue(
    json(chatError("slow down"), { status: 429, headers: { "retry-after": "7" } }),
    json(chatError("slow down"), { status: 429 }),
  );
  expect((await errorOf(await chat())).headers.get("retry-after")).toBe("7");
  expect((await errorOf(await chat())).headers.get("retry-after")).toBe("60");
});

test("an exhausted provider quota returns 429 with x-should-retry: false", async () => {
  const spent = {
    error: {
      message: "You exceeded your current quota, please check your plan and billing details.",
      type: "insufficient_quota",
      param: null,
      code: "insufficient_quota",
    },
  };
  upstream.enqueue(json(spent, { status: 429 }));
  const error = await errorOf(await chat());
  expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
  expect(error.headers.get("x-should-retry")).toBe("false");
});

test("an internal failure returns 500 with the trace id and no internal details", async () => {
  const broken = await startGateway();
  await broken.app.storage.database.schema.dropTable("llm_keys").execute();
  const response = await fetch(`${broken.baseUrl}/keys`, {
    headers: { authorization: `Bearer ${testManagementKey}` },
  });
  const error = await errorOf(response);
  expect(error).toMatchObject({
    status: 500,
    code: "internal_server_error",
    type: "internal_server_error",
  });
  expect(error.metadata).toEqual({
    type: "internal_server_error",
    fault: "gateway",
    trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    doc_url: expect.stringMatching(/^http:\/\/\S+\/docs\/reference\/errors#internal_server_error$/),
  });
  expect(error.headers.get("x-should-retry")).toBeNull();
  expect(JSON.stringify({ ...error, headers: [...error.headers] })).not.toMatch(
    /llm_keys|sqlite|no such table|\.ts|src\//i,
  );
  const traceId = error.headers.get("x-service-trace-id") ?? "no trace id";
  expect(broken.logLines.find((line) => line.includes(traceId))).toMatch(/llm_keys/);
  await broken.stop();
});
