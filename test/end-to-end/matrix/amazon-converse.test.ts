import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import {
  amazonConverseWire as wire,
  converseEvent,
  converseHead,
} from "../../support/upstream/amazon-converse-wire.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import {
  body,
  bodySplit,
  cut,
  head,
  json,
  stream,
  type BodyStep,
  type Script,
} from "../../support/upstream/steps.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { addressOf, type AnyClientName, type ClientDialect } from "./support/client-dialect.ts";
import { fieldsOf, type Fields } from "./support/json-value.ts";
import { routed } from "./support/matrix-scene.ts";
import { allClients } from "./support/pairs.ts";
import { readReply, type Reply } from "./support/reply.ts";

/** A gateway before two upstreams that speak Converse: the second is asked where the first fails. */
let gateway: TestGateway;
let upstream: FaultUpstream;
let backup: FaultUpstream;

beforeAll(async () => {
  [upstream, backup] = await Promise.all([startFaultUpstream(), startFaultUpstream()]);
  const entry = (id: string, at: FaultUpstream) =>
    provider({
      id,
      dialect: "amazon-converse",
      base_url: at.baseUrl,
      api_key: "upstream-secret",
      timeouts_ms: { connect: 1_000, first_token: 2_000, idle: 2_000, total: 4_000 },
      models: [
        {
          id: "acme/large",
          upstream_model: "us.amazon.nova-pro-v1:0",
          context_length: 131_072,
          max_completion_tokens: 8_192,
          pricing: { prompt: "0.50", completion: "1.50" },
        },
      ],
    });
  gateway = await startGateway({
    providers: [entry("first", upstream), entry("second", backup)],
    plans: { enterprise: { perMinute: 1_000_000 } },
  });
});
afterAll(async () => {
  try {
    await expectSoundBooks(gateway);
  } finally {
    await gateway.stop();
    upstream.stop();
    backup.stop();
  }
});

const streamOf = (events: readonly BodyStep[]): Script => stream(events, { headers: converseHead });

/** Sends a request and gives the reply with what the first upstream got last. */
async function ask(
  client: ClientDialect,
  fields: Fields,
  providers: readonly string[] = ["first"],
): Promise<{ reply: Reply; got: Fields; path: string }> {
  const sent = addressOf(client, routed({ ...client.ask("Hi"), ...fields }, providers));
  const reply = await readReply(client, await gateway.post(sent.path, sent.body));
  const request = upstream.requests.at(-1);
  return { reply, got: fieldsOf(request?.json()), path: request?.path ?? "" };
}

const model = "/v1/model/us.amazon.nova-pro-v1%3A0";
const rows = allClients.map((client) => [client.name, client] as const);

describe.each(rows)("a client of %s", (_name, client) => {
  test("gets the same response whole and streamed, at every byte split", async () => {
    const bytes = Buffer.concat(wireEvents(wire).map((event) => event.bytes));
    const scripts: Script[] = [
      json(wire.whole),
      streamOf(wireEvents(wire)),
      streamOf([body(bytes)]),
      streamOf(bodySplit(bytes, [1, 11, 13, 100, 101, 300])),
    ];
    for (const [index, script] of scripts.entries()) {
      upstream.script(script);
      const { reply, got, path } = await ask(client, { stream: index > 0 });
      expect([reply.status, reply.said, reply.finish, reply.endings, reply.breaches]).toEqual([
        200,
        fixtureText,
        "stop",
        1,
        [],
      ]);
      expect(reply.usage).toMatchObject({ input: 11, output: 7 });
      expect(path).toBe(`${model}/converse${index > 0 ? "-stream" : ""}`);
      expect(got).toEqual({
        messages: [{ role: "user", content: [{ text: "Hi" }] }],
        inferenceConfig: { maxTokens: 300 },
      });
    }
  });

  test("receives tool calls, whole and streamed", async () => {
    upstream.enqueue(json(calling), streamOf(callingEvents));
    for (const streamed of [false, true]) {
      const { reply, got } = await ask(client, { ...toolsOf[client.name], stream: streamed });
      expect(reply.calls).toEqual([
        { id: "tooluse_a", name: "get_weather", arguments: '{"city":"Łódź"}' },
      ]);
      expect([reply.status, reply.said, reply.finish, reply.breaches]).toEqual([
        200,
        "Looking.",
        "tool_calls",
        [],
      ]);
      expect(got.toolConfig).toEqual({
        tools: [{ toolSpec: { name: "get_weather", inputSchema: { json: weatherSchema } } }],
      });
    }
  });

  test("can send an image", async () => {
    upstream.enqueue(json(wire.whole));
    const { reply, got } = await ask(client, imageOf[client.name]);
    expect([reply.status, reply.said]).toEqual([200, fixtureText]);
    expect(got.messages).toEqual([
      {
        role: "user",
        content: [
          { text: "What is this?" },
          { image: { format: "png", source: { bytes: "iVBORw0KGgo=" } } },
        ],
      },
    ]);
  });

  test("receives reasoning and cached token counts", async () => {
    const usage = { inputTokens: 4, outputTokens: 7, totalTokens: 151, cacheReadInputTokens: 140 };
    const thought = { text: "hm", signature: "c2ln" };
    upstream.enqueue(
      json({
        ...fieldsOf(wire.whole),
        output: {
          message: {
            role: "assistant",
            content: [{ reasoningContent: { reasoningText: thought } }, { text: "Yes." }],
          },
        },
        usage,
      }),
      streamOf([
        ...wire.opening,
        ...[{ text: "hm" }, { signature: "c2ln" }].map((reasoningContent) =>
          converseEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { reasoningContent } }),
        ),
        converseEvent("contentBlockStop", { contentBlockIndex: 0 }),
        converseEvent("contentBlockDelta", { contentBlockIndex: 1, delta: { text: "Yes." } }),
        ...wire.finish,
        converseEvent("metadata", { usage }),
      ]),
    );
    for (const streamed of [false, true]) {
      const { reply } = await ask(client, { stream: streamed });
      expect([reply.said, reply.endings, reply.breaches]).toEqual(["Yes.", 1, []]);
      expect(reply.usage).toMatchObject({ input: 144, output: 7, cached: 140 });
      if (showsSeals.includes(client.name)) {
        expect([reply.thought, reply.seals.length]).toEqual(["hm", 1]);
      }
    }
  });

  test("receives the provider's refusal", async () => {
    upstream.enqueue(json({ message: "The model cannot do this." }, { status: 400 }));
    const { reply } = await ask(client, {}, ["first", "second"]);
    expect([reply.status, reply.errors.length]).toEqual([400, 1]);
    expect(reply.errors[0]?.message).toContain("The model cannot do this.");
    expect(reply.breaches).toEqual([]);
  });

  test.each<[what: string, status: number]>([
    ["throttles", 429],
    ["is down", 503],
    ["refuses access", 403],
    ["reports a model failure", 424],
  ])("is served by the next provider when the first %s", async (_what, status) => {
    upstream.enqueue(json(wire.errorBody(status), { status }));
    backup.script(streamOf(wireEvents(wire)));
    const { reply } = await ask(client, { stream: true }, ["first", "second"]);
    expect([reply.status, reply.said, reply.endings]).toEqual([200, fixtureText, 1]);
    expect(reply.headers.get("x-service-provider-chain")).toBe("first->second");
  });

  test("is served by the next provider when a stream starts with an exception", async () => {
    upstream.enqueue(
      streamOf([
        ...wire.opening,
        converseEvent("exception:throttlingException", { message: "Slow" }),
      ]),
    );
    backup.script(streamOf(wireEvents(wire)));
    const { reply } = await ask(client, { stream: true }, ["first", "second"]);
    expect([reply.status, reply.said, reply.endings]).toEqual([200, fixtureText, 1]);
  });

  test.each<[what: string, script: Script]>([
    [
      "throttled",
      streamOf([
        ...wire.opening,
        ...wire.content,
        converseEvent("exception:throttlingException", { message: "Too many requests." }),
      ]),
    ],
    ["failed by its model", streamOf([...wire.opening, ...wire.content, ...wire.failure])],
    ["cut", streamOf([...wire.opening, ...wire.content])],
    ["reset", [head({ headers: converseHead }), ...wire.opening, ...wire.content, cut()]],
    ["garbled", streamOf([...wire.opening, ...wire.content, body("no frame of any stream")])],
  ])("receives an error when a stream was %s after content", async (_what, script) => {
    upstream.enqueue(script);
    const { reply } = await ask(client, { stream: true }, ["first", "second"]);
    expect([reply.status, reply.said, reply.errors.length, reply.endings]).toEqual([
      200,
      fixtureText,
      1,
      0,
    ]);
    expect(reply.breaches).toEqual([]);
  });
});

/** Clients that are shown thoughts of a model with the seal that must come back. */
const showsSeals: readonly AnyClientName[] = ["anthropic-messages", "google-generate"];

const weatherSchema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
};

const toolsOf: Readonly<Record<AnyClientName, Fields>> = {
  "openai-chat": {
    tools: [{ type: "function", function: { name: "get_weather", parameters: weatherSchema } }],
  },
  "anthropic-messages": { tools: [{ name: "get_weather", input_schema: weatherSchema }] },
  "openai-responses": {
    tools: [{ type: "function", name: "get_weather", parameters: weatherSchema, strict: false }],
  },
  "google-generate": {
    tools: [
      {
        functionDeclarations: [
          {
            name: "get_weather",
            parameters: {
              type: "OBJECT",
              properties: { city: { type: "STRING" } },
              required: ["city"],
            },
          },
        ],
      },
    ],
  },
};

const imageUrl = "data:image/png;base64,iVBORw0KGgo=";
const imageOf: Readonly<Record<AnyClientName, Fields>> = {
  "openai-chat": {
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: imageUrl } },
        ],
      },
    ],
  },
  "anthropic-messages": {
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          {
            type: "image",
            source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
          },
        ],
      },
    ],
  },
  "openai-responses": {
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: imageUrl },
        ],
      },
    ],
  },
  "google-generate": {
    contents: [
      {
        role: "user",
        parts: [
          { text: "What is this?" },
          { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } },
        ],
      },
    ],
  },
};

const call = { toolUseId: "tooluse_a", name: "get_weather" };
const calling = {
  ...fieldsOf(wire.whole),
  output: {
    message: {
      role: "assistant",
      content: [{ text: "Looking." }, { toolUse: { ...call, input: { city: "Łódź" } } }],
    },
  },
  stopReason: "tool_use",
};
const callingEvents = [
  ...wire.opening,
  converseEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Looking." } }),
  converseEvent("contentBlockStop", { contentBlockIndex: 0 }),
  converseEvent("contentBlockStart", { contentBlockIndex: 1, start: { toolUse: call } }),
  ...['{"city":', '"Łódź"}'].map((input) =>
    converseEvent("contentBlockDelta", { contentBlockIndex: 1, delta: { toolUse: { input } } }),
  ),
  converseEvent("contentBlockStop", { contentBlockIndex: 1 }),
  converseEvent("messageStop", { stopReason: "tool_use" }),
  ...wire.terminator,
];
