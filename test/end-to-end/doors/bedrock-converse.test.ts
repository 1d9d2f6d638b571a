import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { ServedRequest } from "../../../src/http/served-request.ts";
import {
  startStrictUpstream,
  type StrictUpstream,
} from "../../support/strict-vendors/strict-upstream.ts";
import { at, listAt } from "../api/at.ts";
import { amazonEvents } from "./support/amazon-events.ts";

const model = "anthropic/claude-sonnet-4-5";
const sandbox = "sandbox/chat:free";
/** A PNG of one pixel. */
const picture =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

let upstream: StrictUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startStrictUpstream();
  gateway = await startGateway({
    sandbox: true,
    providers: [
      provider({
        id: "anthropic",
        base_url: upstream.baseUrl("anthropic"),
        api_key: "k",
      }),
    ],
    aliases: { "us.anthropic.claude-sonnet-4-5-20250929-v1:0": model },
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});
beforeEach(() => upstream.forget());

const ask = (
  id: string,
  body: object,
  { verb = "converse", key = testLlmKey }: { verb?: string; key?: string } = {},
): Promise<Response> =>
  fetch(`${gateway.origin}/model/${encodeURIComponent(id)}/${verb}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

const hello = { messages: [{ role: "user", content: [{ text: "hello" }] }] };
const look = {
  toolSpec: {
    name: "look",
    description: "Looks something up",
    inputSchema: { json: { type: "object", properties: { q: { type: "string" } } } },
  },
};

test("a whole conversation reaches Claude block by block, and its answer comes back", async () => {
  const body = {
    system: [{ text: "Be brief." }, { cachePoint: { type: "default" } }],
    messages: [
      {
        role: "user",
        content: [
          { text: "What is this?" },
          { image: { format: "png", source: { bytes: picture } } },
          {
            document: {
              format: "md",
              name: "Notes",
              source: { bytes: Buffer.from("# Notes").toString("base64") },
            },
          },
        ],
      },
      {
        role: "assistant",
        content: [{ toolUse: { toolUseId: "t1", name: "look", input: { q: "it" } } }],
      },
      {
        role: "user",
        content: [
          { toolResult: { toolUseId: "t1", content: [{ json: { found: 1 } }], status: "error" } },
        ],
      },
    ],
    inferenceConfig: { maxTokens: 300, temperature: 0.2, stopSequences: ["END"] },
    toolConfig: { tools: [look], toolChoice: { auto: {} } },
    additionalModelRequestFields: { top_k: 40 },
  };
  const response = await ask("us.anthropic.claude-sonnet-4-5-20250929-v1:0", body);
  const answer: unknown = await response.json();
  expect([response.status, answer]).toMatchObject([
    200,
    {
      output: { message: { role: "assistant", content: [{ text: "Understood." }] } },
      stopReason: "end_turn",
      usage: { inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
      metrics: { latencyMs: expect.any(Number) },
    },
  ]);
  expect(at(answer, "usage.cost")).toBeGreaterThan(0);
  expect(upstream.received.at(-1)?.body).toMatchObject({
    max_tokens: 300,
    temperature: 0.2,
    stop_sequences: ["END"],
    top_k: 40,
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    tools: [{ name: "look", input_schema: { type: "object" } }],
    tool_choice: { type: "auto" },
    messages: [
      {
        role: "user",
        content: [
          { type: "text" },
          { type: "image", source: { media_type: "image/png", data: picture } },
          { type: "document", title: "Notes", source: { type: "text", data: "# Notes" } },
        ],
      },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", input: { q: "it" } }] },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "t1",
            is_error: true,
            content: [{ type: "text", text: '{"found":1}' }],
          },
        ],
      },
    ],
  });
});

test("a stream is Amazon's binary events, on any model, and says the same", async () => {
  const whole: unknown = await (await ask(sandbox, hello)).json();
  using idle = spyOn(ServedRequest.prototype, "setIdleSeconds");
  const events = await amazonEvents(await ask(sandbox, hello, { verb: "converse-stream" }));
  // A model may think for longer than a connection may be silent between requests.
  expect(idle.mock.calls.flat().slice(0, 3)).toEqual([0, 75, 0]);
  expect(events[0]).toEqual({ type: "messageStart", payload: { role: "assistant" } });
  expect(events.slice(-2).map(({ type }) => type)).toEqual(["messageStop", "metadata"]);
  const text = events.map(({ payload }) => at(payload, "delta.text") ?? "").join("");
  expect(text).toBe(String(at(whole, "output.message.content.0.text")));
  expect(at(events.at(-1)?.payload, "usage.totalTokens")).toBe(at(whole, "usage.totalTokens"));
});

test("tools and thoughts are streamed in their own blocks", async () => {
  const asked = {
    messages: [{ role: "user", content: [{ text: "hello sandbox:calls=2" }] }],
    toolConfig: { tools: [look] },
    additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1_024 } },
  };
  const events = await amazonEvents(await ask(sandbox, asked, { verb: "converse-stream" }));
  const starts = events.filter(({ type }) => type === "contentBlockStart");
  expect(starts.map(({ payload }) => at(payload, "start.toolUse.name"))).toEqual(["look", "look"]);
  const inputs = new Map<unknown, string>();
  for (const { payload } of events) {
    const input = at(payload, "delta.toolUse.input");
    const index = at(payload, "contentBlockIndex");
    if (typeof input === "string") inputs.set(index, (inputs.get(index) ?? "") + input);
  }
  expect([...inputs.values()].map((input) => typeof JSON.parse(input))).toEqual([
    "object",
    "object",
  ]);
  expect(at(events.at(-2)?.payload, "stopReason")).toBe("tool_use");
});

test("the gateway's own Converse client reads it: a gateway behind a gateway", async () => {
  const front = await startGateway({
    providers: [
      provider({
        id: "behind",
        dialect: "amazon-converse",
        base_url: gateway.origin,
        api_key: testLlmKey,
        models: [
          {
            id: "behind/chat",
            upstream_model: sandbox,
            context_length: 100_000,
            pricing: { prompt: "1", completion: "1" },
          },
        ],
      }),
    ],
  });
  try {
    const body = { model: "behind/chat", messages: [{ role: "user", content: "hello" }] };
    const whole: unknown = await (await front.post("/chat/completions", body)).json();
    const streamed = await (
      await front.post("/chat/completions", { ...body, stream: true })
    ).text();
    const said = String(at(whole, "choices.0.message.content"));
    expect(said).not.toBe("");
    const text = streamed
      .split("\n")
      .filter((line) => line.startsWith("data: {"))
      .map((line) => at(JSON.parse(line.slice(6)), "choices.0.delta.content") ?? "")
      .join("");
    expect(text).toBe(said);
  } finally {
    await front.stop();
  }
});

describe("errors have Bedrock's names", () => {
  test.each<[what: string, id: string, body: object, key: string, status: number, type: string]>([
    ["an unknown model", "no/such", hello, testLlmKey, 404, "ResourceNotFoundException"],
    ["a key that is none", sandbox, hello, "sk-svc-v1-none", 401, "UnrecognizedClientException"],
    ["no messages", sandbox, {}, testLlmKey, 400, "ValidationException"],
    [
      "a guardrail, which must not be ignored",
      sandbox,
      { ...hello, guardrailConfig: { guardrailIdentifier: "g", guardrailVersion: "1" } },
      testLlmKey,
      400,
      "ValidationException",
    ],
    [
      "a video",
      sandbox,
      { messages: [{ role: "user", content: [{ video: { format: "mp4" } }] }] },
      testLlmKey,
      400,
      "ValidationException",
    ],
    [
      "a picture in S3",
      sandbox,
      {
        messages: [
          {
            role: "user",
            content: [
              { image: { format: "png", source: { s3Location: { uri: "s3://bucket/a.png" } } } },
            ],
          },
        ],
      },
      testLlmKey,
      400,
      "ValidationException",
    ],
  ])("%s", async (_, id, body, key, status, type) => {
    for (const verb of ["converse", "converse-stream"]) {
      const response = await ask(id, body, { verb, key });
      const error: unknown = await response.json();
      expect([response.status, at(error, "__type"), at(error, "code")]).toEqual([
        status,
        type,
        type,
      ]);
      expect(String(at(error, "message"))).not.toBe("");
    }
  });
});

test("records have the surface, and what is lost is named", async () => {
  const response = await ask(sandbox, { ...hello, performanceConfig: { latency: "optimized" } });
  expect(response.headers.get("x-service-translation-loss")).toContain("performanceConfig");
  const id = response.headers.get("x-service-trace-id");
  const record: unknown = await (await gateway.get(`/generation/${id}`)).json();
  expect(at(record, "data.surface")).toBe("converse");
  expect(listAt(await (await ask(sandbox, hello)).json(), "output.message.content")).toHaveLength(
    1,
  );
});
