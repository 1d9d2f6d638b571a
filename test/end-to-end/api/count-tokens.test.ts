import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import {
  acme,
  provider,
  startGateway,
  testLlmKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { head, json, reset } from "../../support/upstream/steps.ts";

let native: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  native = await startFaultUpstream();
  const models = [{ id: "native/large", pricing: { prompt: "1", completion: "1" } }];
  gateway = await startGateway({
    providers: [
      provider({
        id: "native",
        base_url: native.baseUrl,
        dialect: "anthropic-messages",
        api_key: "k",
        models,
      }),
      acme(native.baseUrl),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  native.stop();
});

const prompt = {
  messages: [{ role: "user", content: "How many tokens is this?" }],
  system: "Count.",
};
const count = (model: string, changes = {}) =>
  gateway.post(
    "/messages/count_tokens",
    { model, ...prompt, ...changes },
    { headers: { "anthropic-beta": "some-beta" } },
  );

test("forwards the client's body and betas to a provider that counts tokens", async () => {
  native.enqueue(json({ input_tokens: 17 }));
  const response = await count("native/large", { provider: { sort: "price" } });
  expect(await response.json()).toEqual({ input_tokens: 17 });
  expect(response.headers.get("x-service-token-count")).toBe("native");
  const sent = native.requests.at(-1);
  expect(sent?.path).toBe("/v1/messages/count_tokens");
  expect([sent?.headers.get("x-api-key"), sent?.headers.get("anthropic-beta")]).toEqual([
    "k",
    "some-beta",
  ]);
  expect(sent?.json()).toEqual({ model: "large", ...prompt });
});

const refusal = (type: string, status: number) =>
  json({ type: "error", error: { type, message: "No." } }, { status });

test.each([
  ["is overloaded", refusal("overloaded_error", 529)],
  ["refuses the request", refusal("invalid_request_error", 400)],
  ["has no such route", refusal("not_found_error", 404)],
  ["limits it", refusal("rate_limit_error", 429)],
  ["answers something else", json({ message: "Hello" })],
  ["breaks off", [head({ framing: { contentLength: 99 } }), reset()]],
] as const)("estimates the count when the provider %s, and says so", async (_, script) => {
  native.enqueue(script);
  for (const model of ["native/large", "acme/large"]) {
    const response = await count(model);
    const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
    expect(response.headers.get("x-service-token-count")).toBe("estimated");
    expect(tokens).toBeGreaterThan(5);
    expect(tokens).toBeLessThan(30);
  }
});

test("charges, records and holds nothing", async () => {
  expect(
    await gateway.app.storage.database.selectFrom("generations").selectAll().execute(),
  ).toEqual([]);
  expect(gateway.app.ledger.openHoldCount).toBe(0);
});

describe("OpenAI's client counts the input of a response", () => {
  const client = (): OpenAI =>
    new OpenAI({ baseURL: gateway.baseUrl, apiKey: testLlmKey, maxRetries: 0 });
  const counted = async (body: Record<string, unknown>): Promise<number> => {
    const { data, response } = await client()
      .responses.inputTokens.count({ model: "acme/large", ...body })
      .withResponse();
    expect(data.object).toBe("response.input_tokens");
    expect(response.headers.get("x-service-token-count")).toBe("estimated");
    return data.input_tokens;
  };

  test("with instructions and tools, without a provider request or a charge", async () => {
    const asked = native.requests.length;
    const bare = await counted({ input: "How many tokens is this?" });
    expect(bare).toBeGreaterThan(5);
    expect(bare).toBeLessThan(30);
    expect(
      await counted({ input: "How many tokens is this?", instructions: "Count. ".repeat(50) }),
    ).toBeGreaterThan(bare + 50);
    expect(native.requests.length).toBe(asked);
    const credits: unknown = await (await gateway.get("/credits")).json();
    expect(credits).toMatchObject({ used: 0 });
  });

  test("with the previous response that it continues", async () => {
    native.enqueue((request) => chatAnswer(request, { text: "A long answer. ".repeat(40) }));
    const { id } = await client().responses.create({ model: "acme/large", input: "Tell me." });
    expect(await counted({ previous_response_id: id, input: "And then?" })).toBeGreaterThan(100);
    expect(await counted({ previous_response_id: id })).toBeGreaterThan(100);
  });

  test.each<[body: Record<string, unknown>, status: number, code: string]>([
    [{ model: "acme/large" }, 400, "bad_request"],
    [{ model: "acme/none", input: "x" }, 404, "model_unavailable"],
    [
      { model: "acme/large", input: "x", previous_response_id: "resp_none" },
      404,
      "previous_response_not_found",
    ],
  ])("and gets the same errors as for a response: %p", async (body, status, code) => {
    const response = await gateway.post("/responses/input_tokens", body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
  });
});
