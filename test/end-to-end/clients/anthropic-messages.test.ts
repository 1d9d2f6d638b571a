import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { json } from "../../support/upstream/steps.ts";
import { failureOf } from "./openai-client.ts";
import { weatherTool } from "./support/client-under-test.ts";
import { clientStage, modelIn, scriptedCost, upstreamDialects } from "./support/client-stage.ts";

const stage = clientStage();

const anthropic = (options: ConstructorParameters<typeof Anthropic>[0] = {}): Anthropic =>
  new Anthropic({ apiKey: testLlmKey, baseURL: stage.gateway.origin, maxRetries: 0, ...options });

const hello = { max_tokens: 1024, messages: [{ role: "user" as const, content: "Hello" }] };
const native = modelIn("anthropic-messages");

describe("connecting to the gateway", () => {
  test.each([
    ["the host's URL", ""],
    ["the host's URL with /api", "/api"],
  ])("works with %s", async (_, path) => {
    stage.upstream.say({ text: ["Hi."] });
    const baseURL = stage.gateway.origin + path;
    const message = await anthropic({ baseURL }).messages.create({ ...hello, model: native });
    expect(message.content).toMatchObject([{ type: "text", text: "Hi." }]);
  });

  test("works with a token instead of a key", async () => {
    stage.upstream.say({ text: ["Hi."] });
    const client = anthropic({ apiKey: null, authToken: testLlmKey });
    expect((await client.messages.create({ ...hello, model: native })).stop_reason).toBe(
      "end_turn",
    );
  });

  test("models are listed in Anthropic's format", async () => {
    const models = await Array.fromAsync(anthropic().models.list());
    expect(models.map(({ id }) => id)).toContain(native);
    expect(models[0]).toMatchObject({
      type: "model",
      display_name: expect.any(String),
      lifecycle: "active",
      max_input_tokens: 262_144,
    });
  });
});

describe("a provider of the same dialect", () => {
  test("gets the client's body unchanged, except for the model and the user's id, and the betas", async () => {
    stage.upstream.say({ text: ["Hi."] });
    const body = {
      ...hello,
      system: [
        { type: "text" as const, text: "Be brief.", cache_control: { type: "ephemeral" as const } },
      ],
      metadata: { user_id: "somebody" },
      stop_sequences: ["END"],
      tools: [
        {
          name: "get_weather",
          input_schema: { ...weatherTool.parameters, required: ["city"] },
          defer_loading: true,
        },
        { type: "web_search_20250305" as const, name: "web_search" as const, max_uses: 2 },
      ],
    };
    const betas = ["interleaved-thinking-2025-05-14", "never-heard-of-2030-01-01"];
    await anthropic().beta.messages.create({ ...body, model: native, betas });
    const request = stage.upstream.requests.at(-1);
    expect(request?.json()).toEqual({
      ...body,
      model: "anthropic-messages",
      // Scoped by workspace, since the platform's credential serves.
      metadata: { user_id: expect.stringMatching(/^[\w-]{43}$/) },
    });
    expect(request?.headers.get("anthropic-beta")).toBe(betas.join(","));
  });

  test("gets its reasoning back unchanged, redacted reasoning too", async () => {
    const redacted = { type: "redacted_thinking" as const, data: "b3BhcXVl" };
    const thinking = { type: "thinking" as const, thinking: "Hm.", signature: "c2lnbmVk" };
    const use = { type: "tool_use" as const, id: "toolu_1", name: "get_weather", input: {} };
    const result = { type: "tool_result" as const, tool_use_id: "toolu_1", content: "Sun." };
    const messages: Anthropic.MessageParam[] = [
      ...hello.messages,
      { role: "assistant", content: [thinking, redacted, use] },
      { role: "user", content: [result] },
    ];
    await anthropic().messages.create({ ...hello, model: native, messages });
    expect(stage.upstream.requests.at(-1)?.json()).toMatchObject({ messages });
  });
});

describe("headers that name a profile and a workspace at the provider", () => {
  const headers = { "anthropic-user-profile-id": "prof_1", "anthropic-workspace-id": "wrkspc_1" };
  const create = (model: string) =>
    anthropic()
      .messages.create({ ...hello, model }, { headers })
      .withResponse();

  test("reach a provider of the same dialect", async () => {
    const { response } = await create(native);
    const sent = stage.upstream.requests.at(-1);
    for (const [name, value] of Object.entries(headers))
      expect(sent?.headers.get(name)).toBe(value);
    expect(response.headers.get("x-service-translation-loss")).toBeNull();
  });

  test.each(upstreamDialects.filter((dialect) => dialect !== "anthropic-messages"))(
    "are named as lost over %s",
    async (dialect) => {
      const { response } = await create(modelIn(dialect));
      const sent = stage.upstream.requests.at(-1);
      const lost = response.headers.get("x-service-translation-loss");
      for (const name of Object.keys(headers)) {
        expect(sent?.headers.has(name)).toBe(false);
        expect(lost).toContain(name);
      }
    },
  );
});

describe.each(upstreamDialects)("over %s", (dialect) => {
  const model = modelIn(dialect);

  test("a tool that a search has found reaches the model by its name", async () => {
    const messages = [
      ...hello.messages,
      {
        role: "assistant" as const,
        content: [{ type: "tool_use" as const, id: "toolu_1", name: "find", input: {} }],
      },
      {
        role: "user" as const,
        content: [
          {
            type: "tool_result" as const,
            tool_use_id: "toolu_1",
            content: [{ type: "tool_reference" as const, tool_name: "get_weather" }],
          },
        ],
      },
    ];
    await anthropic().messages.create({ ...hello, model, messages });
    expect(JSON.stringify(stage.upstream.requests.at(-1)?.json())).toContain("get_weather");
  });

  test("the events come in order, with the cost on the last delta", async () => {
    stage.upstream.say({ text: ["Hel", "lo."] });
    const stream = await anthropic().messages.create({ ...hello, model, stream: true });
    const events = (await Array.fromAsync(stream)).filter(({ type }) => String(type) !== "ping");
    expect(events.map(({ type }) => type)).toEqual([
      "message_start",
      "content_block_start",
      ...Array<"content_block_delta">(2).fill("content_block_delta"),
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(events.at(-2)).toMatchObject({ usage: { output_tokens: 7, cost: scriptedCost } });
    expect(events.at(0)).toMatchObject({ message: { content: [], model, role: "assistant" } });
  });

  test.each([false, true])(
    "the tool runner continues until there is an answer (stream: %p)",
    async (stream) => {
      stage.upstream.say(
        { calls: [{ id: "toolu_1", name: "get_weather", arguments: { city: "Oslo" } }] },
        { text: ["Sun in Oslo."] },
      );
      const cities: string[] = [];
      const tool = betaTool({
        name: "get_weather",
        description: "Weather of a city.",
        inputSchema: weatherTool.parameters,
        run: ({ city }: { city: string }) => {
          cities.push(city);
          return "Sun.";
        },
      });
      const runner = anthropic().beta.messages.toolRunner({
        ...hello,
        model,
        tools: [tool],
        stream,
      });
      const message = await runner.runUntilDone();
      expect(cities).toEqual(["Oslo"]);
      expect(message.content).toMatchObject([{ type: "text", text: "Sun in Oslo." }]);
    },
  );
});

test("tokens are counted by a provider of the same dialect and estimated for others", async () => {
  const { upstream } = stage;
  upstream.enqueue(json({ input_tokens: 42 }));
  const tools = [{ name: "get_weather", input_schema: { type: "object" as const } }];
  const count = { messages: hello.messages, system: "Be brief.", tools };
  expect(await anthropic().messages.countTokens({ ...count, model: native })).toEqual({
    input_tokens: 42,
  });
  expect(upstream.requests.at(-1)?.path).toEndWith("/messages/count_tokens");
  for (const dialect of upstreamDialects.filter((each) => each !== "anthropic-messages")) {
    const model = modelIn(dialect);
    const { input_tokens: few } = await anthropic().messages.countTokens({ ...count, model });
    expect(few).toBeGreaterThan(5);
    const messages = [
      ...hello.messages,
      { role: "assistant" as const, content: "Well, ".repeat(500) },
    ];
    const { input_tokens: many } = await anthropic().messages.countTokens({
      ...count,
      messages,
      model,
    });
    expect(many).toBeGreaterThan(few + 400);
  }
});

test("errors have Anthropic's envelope with a request id", async () => {
  const failure = await failureOf(() =>
    anthropic().messages.create({ ...hello, model: "scripted/none" }),
  );
  expect(failure).toBeInstanceOf(Anthropic.NotFoundError);
  expect(failure).toMatchObject({
    type: "not_found_error",
    requestID: expect.stringMatching(/^[0-9a-f]{32}$/),
    error: { type: "error", error: { type: "not_found_error", message: expect.any(String) } },
  });
});

test("a missing required field returns 400", async () => {
  const { max_tokens: _, ...rest } = hello;
  const failure = await failureOf(() =>
    anthropic().messages.create({ ...rest, model: native } as typeof hello & { model: string }),
  );
  expect(failure).toBeInstanceOf(Anthropic.BadRequestError);
  expect(String(failure)).toContain("max_tokens");
});
