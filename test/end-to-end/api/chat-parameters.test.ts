import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { at, listAt } from "./at.ts";
import { readChatStream } from "./read-chat-stream.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

const ask = (content: unknown, fields: Record<string, unknown> = {}): Promise<Response> =>
  gateway.post("/chat/completions", {
    model: "sandbox/chat:free",
    messages: [{ role: "user", content }],
    ...fields,
  });

const whole = async (content: unknown, fields: Record<string, unknown> = {}): Promise<unknown> =>
  (await ask(content, fields)).json();
const chunks = async (content: unknown, fields: Record<string, unknown> = {}): Promise<unknown[]> =>
  (await readChatStream(await ask(content, { ...fields, stream: true }))).chunks;

const tool = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

test("a whole response has every documented field", async () => {
  expect(await whole("Hello")).toMatchObject({
    id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/),
    object: "chat.completion",
    created: expect.any(Number),
    model: "sandbox/chat:free",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: expect.any(String) },
        finish_reason: "stop",
      },
    ],
    usage: {
      prompt_tokens: expect.any(Number),
      completion_tokens: expect.any(Number),
      total_tokens: expect.any(Number),
      cost: 0,
    },
  });
});

test("finish_reason is stop, length or tool_calls", async () => {
  expect(at(await whole("Hello"), "choices.0.finish_reason")).toBe("stop");
  expect(at(await whole("Hello", { max_tokens: 2 }), "choices.0.finish_reason")).toBe("length");
  expect(at(await whole("Weather?", { tools: [tool] }), "choices.0.finish_reason")).toBe(
    "tool_calls",
  );
  const { type: _, ...untyped } = tool;
  const forced = { tools: [untyped], tool_choice: { function: { name: "get_weather" } } };
  expect(at(await whole("Weather?", forced), "choices.0.finish_reason")).toBe("tool_calls");
});

test("n: 2 returns two choices, whole and streamed", async () => {
  expect(
    listAt(await whole("Hello", { n: 2 }), "choices").map((choice) => at(choice, "index")),
  ).toEqual([0, 1]);
  const streamed = await chunks("Hello", { n: 2 });
  const finished = streamed
    .flatMap((chunk) => listAt(chunk, "choices"))
    .filter((choice) => typeof at(choice, "finish_reason") === "string");
  expect(finished.map((choice) => at(choice, "index")).sort()).toEqual([0, 1]);
});

test("log probabilities are returned, whole and streamed", async () => {
  const fields = { logprobs: true, top_logprobs: 2 };
  expect(
    listAt(await whole("Hello", fields), "choices.0.logprobs.content.0.top_logprobs"),
  ).toHaveLength(2);
  const streamed = (await chunks("Hello", fields)).flatMap(
    (chunk) => at(chunk, "choices.0.logprobs.content") ?? [],
  );
  expect(at(streamed[0], "token")).toBeString();
});

test("parallel tool calls keep their ids, names and arguments, whole and streamed", async () => {
  const message = at(await whole("sandbox:calls=2", { tools: [tool] }), "choices.0.message");
  expect(at(message, "content")).toBeNull();
  const calls = listAt(message, "tool_calls");
  expect(calls).toMatchObject([
    { type: "function", function: { name: "get_weather" } },
    { type: "function", function: { name: "get_weather" } },
  ]);
  expect(new Set(calls.map((call) => at(call, "id"))).size).toBe(2);
  const deltas = (await chunks("sandbox:calls=2", { tools: [tool] })).flatMap((chunk) => {
    const found = at(chunk, "choices.0.delta.tool_calls");
    return Array.isArray(found) ? (found as unknown[]) : [];
  });
  const argumentsOf = (index: number): string =>
    deltas
      .filter((delta) => at(delta, "index") === index)
      .map((delta) => at(delta, "function.arguments") ?? "")
      .join("");
  expect([argumentsOf(0), argumentsOf(1)].map((text) => Object.keys(JSON.parse(text)))).toEqual([
    ["city"],
    ["city"],
  ]);
});

test("a tool result is accepted and answered", async () => {
  const answered = await gateway.post("/chat/completions", {
    model: "sandbox/chat:free",
    tools: [tool],
    messages: [
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call_1",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Paris"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "22 degrees" },
    ],
  });
  expect(at(await answered.json(), "choices.0.message.content")).toContain("22 degrees");
});

test("reasoning is returned in the field that the provider uses", async () => {
  expect(
    at(await whole("Hello", { reasoning_effort: "high" }), "choices.0.message.reasoning_content"),
  ).toBeString();
  const streamed = await chunks("Hello", { reasoning_effort: "high" });
  expect(
    streamed.some((chunk) => typeof at(chunk, "choices.0.delta.reasoning_content") === "string"),
  ).toBe(true);
});

test("an output limit spent entirely on reasoning: 400 max_tokens_too_small, or finish_reason length", async () => {
  const fields = { reasoning_effort: "high", max_tokens: 1 };
  const refused = await ask("Hello", fields);
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({
    error: { code: "max_tokens_too_small", type: "invalid_request_error", param: "max_tokens" },
  });
  const streamed = await chunks("Hello", fields);
  expect(
    streamed
      .map((chunk) => at(chunk, "choices.0.finish_reason"))
      .filter((reason) => typeof reason === "string"),
  ).toEqual(["length"]);
});

test("session, trace and attribution are stored in the generation record, and session_id overrides the header", async () => {
  const trace = {
    trace_id: "t",
    trace_name: "n",
    span_name: "s",
    generation_name: "g",
    parent_span_id: "p",
  };
  const record = async (
    fields: Record<string, unknown>,
    headers: Record<string, string>,
  ): Promise<unknown> => {
    const response = await gateway.post(
      "/chat/completions",
      { model: "sandbox/chat:free", messages: [{ role: "user", content: "x" }], ...fields },
      { headers },
    );
    return at(
      await (await gateway.get(`/generation/${response.headers.get("x-service-trace-id")}`)).json(),
      "data",
    );
  };
  const headers = {
    "x-session-id": "from-header",
    "http-referer": "https://app.example",
    "x-title": "App",
  };
  expect(await record({ trace }, headers)).toMatchObject({
    session_id: "from-header",
    trace,
    origin: "https://app.example",
    app_title: "App",
  });
  expect(await record({ session_id: "from-body" }, headers)).toMatchObject({
    session_id: "from-body",
  });
  expect(await record({}, {})).toMatchObject({
    session_id: null,
    trace: null,
    // OpenRouter's own client demands a text; http_referer tells absence.
    origin: "",
    http_referer: null,
    app_title: null,
  });
});
