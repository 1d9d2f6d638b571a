import { afterAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { systemClock } from "../../platform/kernel/clock.ts";
import { startSandbox } from "./sandbox.ts";

const sandbox = startSandbox({ clock: systemClock });
const openai = new OpenAI({ apiKey: "sandbox", baseURL: `${sandbox.baseUrl}/v1`, maxRetries: 0 });
afterAll(() => sandbox.stop());

const model = "sandbox-chat";
const ask = (content: string): OpenAI.ChatCompletionMessageParam[] => [{ role: "user", content }];

// The client's promises are lazy, so that `expect(...).rejects` cannot look into them.
async function failureOf(work: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    return error;
  }
}

const weatherTool: OpenAI.ChatCompletionFunctionTool = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
      required: ["city", "unit"],
    },
  },
};
const weatherArguments = '{"city":"simulated city","unit":"celsius"}';

test("chat stream: text, usage and finish reason match the whole response", async () => {
  const request = { model, messages: ask("Hello"), stream_options: { include_usage: true } };
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  const whole = await openai.chat.completions.create({ model, messages: ask("Hello") });
  expect(streamed.choices[0]?.message.content).toStartWith("[simulated by the Switchyard sandbox]");
  expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content ?? "");
  expect(streamed.choices[0]?.finish_reason).toBe("stop");
  expect(streamed.usage).toEqual(whole.usage);
  expect(whole.usage?.total_tokens).toBe(
    (whole.usage?.prompt_tokens ?? 0) + (whole.usage?.completion_tokens ?? 0),
  );
});

test("chat stream: has no usage by default", async () => {
  const chunks = await Array.fromAsync(
    await openai.chat.completions.create({
      model,
      messages: ask("Hello"),
      stream: true,
    }),
  );
  expect(chunks.every((chunk) => chunk.usage === undefined)).toBe(true);
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
});

test("chat: a tool call, streamed and whole, and the response to its result", async () => {
  const request = { model, messages: ask("Weather in Paris?"), tools: [weatherTool] };
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  const call = streamed.choices[0]?.message.tool_calls?.[0];
  expect(streamed.choices[0]?.finish_reason).toBe("tool_calls");
  expect(call).toMatchObject({
    type: "function",
    function: { name: "get_weather", arguments: weatherArguments },
  });
  const whole = await openai.chat.completions.create(request);
  expect(whole.choices[0]?.message.content).toBeNull();
  expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject({
    function: { arguments: weatherArguments },
  });
  const after = await openai.chat.completions.create({
    ...request,
    messages: [
      ...request.messages,
      {
        role: "assistant",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "get_weather", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "22 degrees" },
    ],
  });
  expect(after.choices[0]?.message.content).toContain('The tool returned: "22 degrees"');
});

test("chat: runTools completes after one round", async () => {
  const cities: string[] = [];
  const runner = openai.chat.completions.runTools({
    model,
    messages: ask("Weather?"),
    stream: true,
    tools: [
      {
        type: "function",
        function: {
          name: "get_weather",
          description: "Weather of a city.",
          parameters: weatherTool.function.parameters ?? {},
          parse: JSON.parse,
          function: (input: { city: string }) => {
            cities.push(input.city);
            return "sunny";
          },
        },
      },
    ],
  });
  expect(await runner.finalContent()).toContain("sunny");
  expect(cities).toEqual(["simulated city"]);
});

test("chat: parallel and custom tool calls", async () => {
  const custom: OpenAI.ChatCompletionCustomTool = {
    type: "custom",
    custom: { name: "apply_patch" },
  };
  const request = { model, messages: ask("sandbox:calls=2"), tools: [weatherTool, custom] };
  const whole = await openai.chat.completions.create(request);
  expect(whole.choices[0]?.message.tool_calls).toMatchObject([
    { type: "function", function: { name: "get_weather" } },
    { type: "custom", custom: { name: "apply_patch", input: "simulated input of apply_patch" } },
  ]);
  const named = await openai.chat.completions.create({
    ...request,
    tool_choice: { type: "custom", custom: { name: "apply_patch" } },
  });
  expect(named.choices[0]?.message.tool_calls?.every((call) => call.type === "custom")).toBe(true);
});

test("chat stream: parallel calls keep their indexes", async () => {
  const streamed = await openai.chat.completions
    .stream({
      model,
      messages: ask("sandbox:calls=3"),
      tools: [weatherTool],
    })
    .finalChatCompletion();
  const calls = streamed.choices[0]?.message.tool_calls ?? [];
  expect(calls.map((call) => call.type === "function" && call.function.arguments)).toEqual([
    weatherArguments,
    weatherArguments,
    weatherArguments,
  ]);
});

test("chat stream: JSON matches its schema", async () => {
  const schema = {
    type: "object",
    properties: {
      steps: { type: "array", items: { type: "string" } },
      total: { type: "integer", minimum: 3 },
    },
    required: ["steps", "total"],
    additionalProperties: false,
  };
  const streamed = await openai.chat.completions
    .stream({
      model,
      messages: ask("Plan"),
      response_format: { type: "json_schema", json_schema: { name: "plan", strict: true, schema } },
    })
    .finalChatCompletion();
  expect(JSON.parse(streamed.choices[0]?.message.content ?? "")).toEqual({
    steps: ["simulated steps"],
    total: 3,
  });
});

test("chat: choices, limits, stop sequences, reasoning and log probabilities", async () => {
  const two = await openai.chat.completions
    .stream({ model, messages: ask("Hi"), n: 2 })
    .finalChatCompletion();
  expect(two.choices.map((choice) => choice.index)).toEqual([0, 1]);
  expect(two.choices[1]?.message.content).toContain("This is answer 2.");
  const short = await openai.chat.completions.create({
    model,
    messages: ask("Hi"),
    max_completion_tokens: 4,
  });
  expect(short.choices[0]).toMatchObject({
    finish_reason: "length",
    message: { content: "[simulated by th" },
  });
  expect(short.usage?.completion_tokens).toBe(4);
  const stopped = await openai.chat.completions.create({ model, messages: ask("Hi"), stop: " by" });
  expect(stopped.choices[0]).toMatchObject({
    finish_reason: "stop",
    message: { content: "[simulated" },
  });
  const reasoned = await openai.chat.completions.create({
    model,
    messages: ask("Hi"),
    reasoning_effort: "high",
  });
  expect(reasoned.choices[0]?.message).toHaveProperty("reasoning_content");
  expect(reasoned.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0);
  const likely = await openai.chat.completions
    .stream({
      model,
      messages: ask("Hi"),
      logprobs: true,
      top_logprobs: 2,
    })
    .finalChatCompletion();
  const tokens = likely.choices[0]?.logprobs?.content ?? [];
  expect(tokens.map((entry) => entry.token).join("")).toBe(
    likely.choices[0]?.message.content ?? "",
  );
  expect(tokens[0]?.top_logprobs).toHaveLength(2);
});

test("chat: a refusal and a stream error raise the client's own errors", async () => {
  const refused = await failureOf(() =>
    openai.chat.completions.create({ model, messages: ask("sandbox:status=429") }),
  );
  expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
  const failed = await failureOf(() =>
    openai.chat.completions
      .stream({ model, messages: ask("sandbox:error_after=2") })
      .finalChatCompletion(),
  );
  expect(String(failed)).toContain("failed in the middle");
});

test("responses stream: text, reasoning and usage match the whole response", async () => {
  const reasoning = { effort: "low", summary: "auto" } as const;
  const request = { model, input: "Hello", reasoning };
  const streamed = await openai.responses.stream(request).finalResponse();
  const whole = await openai.responses.create(request);
  expect(streamed.output_text).toStartWith("[simulated by the Switchyard sandbox]");
  expect(streamed.output.map((item) => item.type)).toEqual(["reasoning", "message"]);
  expect(whole.output_text).toBe(streamed.output_text);
  expect(streamed.usage ?? undefined).toEqual(whole.usage ?? undefined);
  expect(streamed.status).toBe("completed");
});

test("responses stream: function calls, custom calls and an output limit", async () => {
  const calling = await openai.responses
    .stream({
      model,
      input: "sandbox:calls=2",
      tools: [
        {
          type: "function",
          name: "get_weather",
          parameters: weatherTool.function.parameters ?? {},
          strict: false,
        },
        { type: "custom", name: "apply_patch" },
      ],
    })
    .finalResponse();
  expect(calling.output).toMatchObject([
    { type: "function_call", name: "get_weather", arguments: weatherArguments },
    { type: "custom_tool_call", name: "apply_patch", input: "simulated input of apply_patch" },
  ]);
  const short = await openai.responses.create({ model, input: "Hello", max_output_tokens: 16 });
  expect(short).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
  });
});

test("responses: sequence numbers have no gaps and end with the requested failure", async () => {
  const events = [];
  const stream = await openai.responses.create({
    model,
    input: "sandbox:error_after=3",
    stream: true,
  });
  try {
    for await (const event of stream) events.push(event);
  } catch (error) {
    // The client throws on `error` events; what came before it is what counts here.
    expect(error).toBeInstanceOf(OpenAI.APIError);
  }
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
});

test("embeddings: the vector is equal as floats and as base64", async () => {
  const request = {
    model: "sandbox-embed",
    input: ["red apple", "green apple", "blue car"],
    dimensions: 64,
  };
  const packed = await openai.embeddings.create(request);
  const floats = await openai.embeddings.create({ ...request, encoding_format: "float" });
  for (const [index, entry] of floats.data.entries()) {
    expect(entry.embedding).toHaveLength(64);
    const decoded = packed.data[index]?.embedding ?? [];
    for (const [place, value] of entry.embedding.entries())
      expect(decoded[place]).toBeCloseTo(value, 5);
  }
  const near = (left: number, right: number): number =>
    (floats.data[left]?.embedding ?? []).reduce(
      (sum, value, place) => sum + value * (floats.data[right]?.embedding[place] ?? 0),
      0,
    );
  expect(near(0, 1)).toBeGreaterThan(near(0, 2));
  expect(floats.usage.prompt_tokens).toBe(8);
});

test("moderations: flags by word, with one result for each text", async () => {
  const { results } = await openai.moderations.create({ input: ["a nice day", "I will kill it"] });
  expect(results.map((result) => result.flagged)).toEqual([false, true]);
  expect(results[1]?.categories.violence).toBe(true);
  expect(results[1]?.category_scores.violence).toBeGreaterThan(0.5);
});

test("rerank: sorts by common words and keeps the original indexes", async () => {
  const documents = ["blue car", { text: "an apple" }, "red apple"];
  const request = { model: "r", query: "red apple", documents, top_n: 2, return_documents: true };
  const answer = await fetch(`${sandbox.baseUrl}/v1/rerank`, {
    method: "POST",
    body: JSON.stringify(request),
  });
  expect(await answer.json()).toMatchObject({
    usage: { total_tokens: 10 },
    results: [{ index: 2, relevance_score: 1, document: { text: "red apple" } }, { index: 1 }],
  });
});
