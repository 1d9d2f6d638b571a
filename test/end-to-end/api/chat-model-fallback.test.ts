import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError, type StreamedChatAnswer } from "../../support/upstream/openai-chat-fixtures.ts";
import { cut, json, raw, type Script } from "../../support/upstream/steps.ts";
import { at, listAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { readChatStream } from "./read-chat-stream.ts";

const model = (id: string, price: string, more: Record<string, unknown> = {}): unknown => ({
  id,
  upstream_model: id.slice(id.indexOf("/") + 1),
  pricing: { prompt: price, completion: price },
  ...more,
});

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const at = (id: string, models: unknown[]) =>
    provider({ id, base_url: upstream.baseUrl, dialect: "openai-chat", api_key: "k", models });
  gateway = await startGateway({
    providers: [
      at("one", [model("acme/first", "3", { max_completion_tokens: 50 })]),
      at("two", [model("acme/second", "1"), model("acme/shared", "2")]),
      at("three", [model("acme/shared", "2")]),
      at("narrow", [
        model("acme/short", "1", { context_length: 8_000 }),
        model("acme/also-short", "1", { context_length: 8_000 }),
      ]),
      at("wide", [model("acme/long", "1", { context_length: 32_000 })]),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const failed = (status: number): Script => json(chatError("no"), { status });
const request = (fields: Record<string, unknown> = {}): Record<string, unknown> =>
  chatRequest({ model: "acme/first", models: ["acme/second"], ...fields });
const send = (fields: Record<string, unknown> = {}): Promise<Response> =>
  gateway.post("/chat/completions", request(fields));

/** How the first model fails, and the reason that the caller reads. */
const reasons: readonly [string, Script, string, number | null][] = [
  ["429", failed(429), "rate_limited", 429],
  ["408", failed(408), "timeout", 408],
  ["504", failed(504), "timeout", 504],
  ["404", failed(404), "model_unavailable", 404],
  ["401", failed(401), "credential_error", 401],
  ["402", failed(402), "credential_error", 402],
  ["403", failed(403), "credential_error", 403],
  ["500", failed(500), "upstream_error", 500],
  ["503", failed(503), "upstream_error", 503],
  ["a truncated response", [raw("HTTP/1.1 2"), cut()], "upstream_error", null],
];

describe.each([[false], [true]])("stream: %p", (stream) => {
  test.each(reasons)(
    "the first model fails with %s: the second serves, and headers, body and record give the reason",
    async (_, script, reason, status) => {
      upstream.enqueue(script);
      const response = await send({ stream });
      expect(Object.fromEntries(response.headers)).toMatchObject({
        "x-service-model": "acme/second",
        "x-service-upstream-model": "second",
        "x-service-requested-model": "acme/first",
        "x-service-fallback-reason": reason,
        "x-service-provider-chain": "one->two",
      });
      const block = stream ? (await readChatStream(response)).chunks.at(-1) : await response.json();
      expect(block).toMatchObject({
        model: "acme/second",
        requested_model: "acme/first",
        usage: { cost: 0.000018 },
        fallback: {
          used: true,
          reason,
          attempts: [
            { model: "acme/first", provider: "one", status, outcome: "failed", reason },
            { model: "acme/second", provider: "two", status: 200, outcome: "served", reason: null },
          ],
        },
      });
    },
  );

  test("a first model without an eligible route is reported as not_attempted", async () => {
    const response = await send({ stream, max_tokens: 51, model: "acme/first:floor" });
    expect(response.headers.get("x-service-fallback-reason")).toBe("not_attempted");
    expect(response.headers.get("x-service-requested-model")).toBe("acme/first");
    const block = stream ? (await readChatStream(response)).chunks.at(-1) : await response.json();
    expect(at(block, "fallback.reason")).toBe("not_attempted");
    expect(listAt(block, "fallback.attempts")).toHaveLength(1);
  });

  test.each([[{}], [{ models: ["acme/first"] }], [{ model: "acme/shared" }]])(
    "reports no fallback when the requested model serves: %j",
    async (fields) => {
      if ("model" in fields) upstream.enqueue(failed(503));
      const response = await send({ stream, ...fields });
      expect(response.headers.get("x-service-requested-model")).toBeNull();
      expect(response.headers.get("x-service-fallback-reason")).toBeNull();
      expect(await response.text()).not.toContain("fallback");
    },
  );
});

/** Where the upstream sends usage, and which chunk is then the first to carry it. */
test.each([
  ["after", -1],
  ["finish", -2],
  ["every", 0],
] as const)(
  "streamed, usage on %s: the fallback block is only on the first chunk that carries usage",
  async (usageOn, index) => {
    const served: StreamedChatAnswer = { usageOn };
    upstream.enqueue(failed(500), (sent) => chatAnswer(sent, served));
    const { chunks } = await readChatStream(await send({ stream: true }));
    const places = chunks.flatMap((chunk, place) =>
      at(chunk, "fallback") === undefined ? [] : [place],
    );
    expect(places).toEqual([index < 0 ? chunks.length + index : index]);
    expect(at(chunks.at(index), "requested_model")).toBe("acme/first");
  },
);

test("streamed without usage from upstream: the headers report the fallback", async () => {
  upstream.enqueue(failed(500), (sent) => chatAnswer(sent, { usageOn: "never" }));
  const response = await send({ stream: true });
  expect(response.headers.get("x-service-fallback-reason")).toBe("upstream_error");
  await response.text();
});

test("an unknown fallback model returns 404 that names its position", async () => {
  const error = await errorOf(await send({ models: ["acme/second", "acme/nobody-knows"] }));
  expect(error).toMatchObject({ status: 404, code: "model_unavailable", param: "models[1]" });
  const messages = await gateway.post("/messages", {
    model: "acme/first",
    models: ["acme/nobody-knows"],
    max_tokens: 9,
    messages: [{ role: "user", content: "Hi" }],
  });
  expect(await messages.json()).toMatchObject({
    error: { code: "no_upstream", param: "models[0]" },
  });
});

test("when all models fail, returns 502 with every attempt and x-should-retry: false", async () => {
  upstream.enqueue(failed(500), failed(429));
  const error = await errorOf(await send());
  expect(error).toMatchObject({ status: 502, code: "upstream_exhausted", type: "upstream_error" });
  expect(error.headers.get("x-should-retry")).toBe("false");
  expect(at(error.metadata, "upstream_attempts")).toMatchObject([
    { backend: "one", model: "acme/first", status: 500 },
    { backend: "two", model: "acme/second", status: 429 },
  ]);
});

test("a request that the provider rejects as invalid is not tried at another provider", async () => {
  const before = upstream.requests.length;
  upstream.enqueue(failed(400));
  expect(await errorOf(await send())).toMatchObject({ status: 400, code: "bad_request" });
  expect(upstream.requests.length).toBe(before + 1);
});

/**
 * How providers say that a request is too long, and where it goes on: a streamed request as any
 * other.
 */
describe.each([[false], [true]])("a request above the context window, stream: %p", (stream) => {
  const tooLong = json(chatError("This model's maximum context length is 8000 tokens."), {
    status: 400,
  });
  const sendLong = (...models: string[]): Promise<Response> =>
    gateway.post("/chat/completions", chatRequest({ stream, model: "acme/short", models }));

  test("falls back to a model with a larger window and skips those that are as small", async () => {
    upstream.enqueue(tooLong);
    const response = await sendLong("acme/also-short", "acme/long");
    expect(response.status).toBe(200);
    expect(response.headers.get("x-service-provider-chain")).toBe("narrow->wide");
    expect(response.headers.get("x-service-model")).toBe("acme/long");
    await response.text();
  });

  test("returns context_length_exceeded when no larger model exists or the larger one is too small as well", async () => {
    upstream.enqueue(tooLong);
    expect(await errorOf(await sendLong("acme/also-short"))).toMatchObject({
      status: 400,
      code: "context_length_exceeded",
    });
    upstream.enqueue(tooLong, tooLong);
    const error = await errorOf(await sendLong("acme/long"));
    expect(error).toMatchObject({ status: 400, code: "context_length_exceeded" });
    expect(at(error.metadata, "upstream_attempts")).toMatchObject([
      { backend: "narrow" },
      { backend: "wide" },
    ]);
  });
});

test("allow_fallbacks: false limits the request to one candidate, whatever models it names", async () => {
  upstream.enqueue(failed(500));
  const error = await errorOf(await send({ provider: { allow_fallbacks: false } }));
  expect(error.metadata).toMatchObject({
    upstream_backend: "one",
    upstream_attempts: [{ backend: "one", model: "acme/first", status: 500 }],
  });
});

test.each([
  ["model", "one"],
  ["none", "two"],
])("partition %s: the first provider to serve is %s", async (partition, first) => {
  const response = await send({ provider: { sort: { by: "price", partition } } });
  expect(response.headers.get("x-service-provider-chain")).toBe(first);
  await response.text();
});
