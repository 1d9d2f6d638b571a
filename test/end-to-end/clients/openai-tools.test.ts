import { afterAll, beforeAll, expect, test } from "bun:test";
import type OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { openaiClient } from "./openai-client.ts";

let gateway: TestGateway;
let openai: OpenAI;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
  openai = openaiClient(gateway);
});
afterAll(() => gateway.stop());

const model = "sandbox/chat:free";
const ask = (content: string): OpenAI.ChatCompletionMessageParam[] => [{ role: "user", content }];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather: OpenAI.ChatCompletionFunctionTool = {
  type: "function",
  function: { name: "get_weather", parameters },
};

test.each([false, true])(
  "runTools calls the tool once and returns the answer (stream: %p)",
  async (stream) => {
    const cities: string[] = [];
    const tools = [
      {
        type: "function" as const,
        function: {
          name: "get_weather",
          description: "Weather of a city.",
          parameters,
          parse: JSON.parse,
          function: ({ city }: { city: string }) => {
            cities.push(city);
            return "sunny";
          },
        },
      },
    ];
    const request = { model, messages: ask("Weather?"), tools };
    const runner = stream
      ? openai.chat.completions.runTools({ ...request, stream: true })
      : openai.chat.completions.runTools(request);
    expect(await runner.finalContent()).toContain("sunny");
    expect(cities).toEqual(["simulated city"]);
  },
);

test("parallel tool calls keep their order, whole and streamed", async () => {
  const request = { model, messages: ask("sandbox:calls=3"), tools: [weather] };
  const whole = await openai.chat.completions.create(request);
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  for (const { choices } of [whole, streamed]) {
    const calls = choices[0]?.message.tool_calls ?? [];
    expect(calls.map((call) => call.type === "function" && call.function.arguments)).toEqual(
      Array(3).fill('{"city":"simulated city"}'),
    );
    expect(new Set(calls.map((call) => call.id)).size).toBe(3);
    expect(choices[0]?.finish_reason).toBe("tool_calls");
  }
});

test("a custom tool can be forced", async () => {
  const custom: OpenAI.ChatCompletionCustomTool = {
    type: "custom",
    custom: { name: "apply_patch" },
  };
  const completion = await openai.chat.completions.create({
    model,
    messages: ask("Patch"),
    tools: [weather, custom],
    tool_choice: { type: "custom", custom: { name: "apply_patch" } },
  });
  expect(completion.choices[0]?.message.tool_calls).toMatchObject([
    { type: "custom", custom: { name: "apply_patch" } },
  ]);
});

const planFormat: OpenAI.ResponseFormatJSONSchema = {
  type: "json_schema",
  json_schema: {
    name: "plan",
    strict: true,
    schema: {
      type: "object",
      properties: {
        steps: { type: "array", items: { type: "string" } },
        total: { type: "integer" },
      },
      required: ["steps", "total"],
      additionalProperties: false,
    },
  },
};

test("structured output is parsed by the client", async () => {
  const format = zodResponseFormat(
    z.object({ steps: z.array(z.string()), total: z.int() }),
    "plan",
  );
  const parsed = await openai.chat.completions.parse({
    model,
    messages: ask("Plan"),
    response_format: format,
  });
  expect(parsed.choices[0]?.message.parsed?.steps).toEqual(["simulated steps"]);
  const streamed = await openai.chat.completions
    .stream({ model, messages: ask("Plan"), response_format: planFormat })
    .finalChatCompletion();
  expect(JSON.parse(streamed.choices[0]?.message.content ?? "")).toMatchObject({
    steps: ["simulated steps"],
  });
});

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("an image is accepted with the text", async () => {
  const plain = await openai.chat.completions.create({ model, messages: ask("What is this?") });
  const seen = await openai.chat.completions.create({
    model,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: pixel, detail: "low" } },
        ],
      },
    ],
  });
  expect(seen.choices[0]?.message.content).toBeString();
  expect(seen.usage?.prompt_tokens ?? 0).toBeGreaterThan(plain.usage?.prompt_tokens ?? 0);
});

test("two choices, log probabilities and reasoning work through the stream helper", async () => {
  const two = await openai.chat.completions
    .stream({ model, messages: ask("Hi"), n: 2 })
    .finalChatCompletion();
  expect(two.choices.map((choice) => choice.index)).toEqual([0, 1]);
  const likely = await openai.chat.completions
    .stream({ model, messages: ask("Hi"), logprobs: true, top_logprobs: 2 })
    .finalChatCompletion();
  expect(likely.choices[0]?.logprobs?.content?.[0]?.top_logprobs).toHaveLength(2);
  const reasoned = await openai.chat.completions.create({
    model,
    messages: ask("Hi"),
    reasoning_effort: "high",
  });
  expect(reasoned.usage?.completion_tokens_details?.reasoning_tokens ?? 0).toBeGreaterThan(0);
});
