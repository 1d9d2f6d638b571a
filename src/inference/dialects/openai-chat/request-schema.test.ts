import { describe, expect, test } from "bun:test";
import { leastMicroseconds } from "../../../../test/support/least-microseconds.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { compiledCheck } from "../shared/request-check.ts";
import { chatRequestSchema, checkChatRequest, withToolTypes } from "./request-schema.ts";

const valid = { model: "acme/large", messages: [{ role: "user", content: "Hi" }] };

function refusal(body: Record<string, unknown>): GatewayError | undefined {
  try {
    checkChatRequest(body);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

const message = (fields: object): { messages: object[] } => ({
  messages: [...valid.messages, fields],
});

describe("checkChatRequest refuses and names the field", () => {
  const rows: [param: string, change: object][] = [
    ["model", { model: undefined }],
    ["model", { model: "" }],
    ["model", { model: 7 }],
    ["model", { model: null }],
    ["messages", { messages: undefined }],
    ["messages", { messages: [] }],
    ["messages", { messages: "Hi" }],
    ["messages", { messages: { role: "user" } }],
    ["messages[1]", { messages: [...valid.messages, "Hi"] }],
    ["messages[1]", { messages: [...valid.messages, null] }],
    ["messages[1].role", message({ content: "Hi" })],
    ["messages[1].role", message({ role: "bot", content: "Hi" })],
    ["messages[1].content", message({ role: "user" })],
    ["messages[1].content", message({ role: "user", content: 5 })],
    ["messages[1].content", message({ role: "assistant", content: { text: "Hi" } })],
    ["messages[1].content", message({ role: "tool", tool_call_id: "a" })],
    ["messages[1].tool_call_id", message({ role: "tool", content: "a" })],
    ["messages[1].name", message({ role: "function", content: "a" })],
    [
      "messages[1].tool_calls[0].function",
      message({ role: "assistant", tool_calls: [{ id: "a" }] }),
    ],
    ["temperature", { temperature: 2.01 }],
    ["temperature", { temperature: -0.1 }],
    ["temperature", { temperature: "1" }],
    ["top_p", { top_p: 1.5 }],
    ["frequency_penalty", { frequency_penalty: -2.5 }],
    ["presence_penalty", { presence_penalty: 3 }],
    ["max_tokens", { max_tokens: 0 }],
    ["max_tokens", { max_tokens: 1.5 }],
    ["max_completion_tokens", { max_completion_tokens: -1 }],
    ["n", { n: 0 }],
    ["n", { n: 129 }],
    ["seed", { seed: 1.5 }],
    ["top_logprobs", { top_logprobs: 21 }],
    ["logprobs", { logprobs: 1 }],
    ["stream", { stream: "true" }],
    ["stream_options", { stream_options: true }],
    ["stop", { stop: 5 }],
    ["stop", { stop: ["a", "b", "c", "d", "e"] }],
    ["stop[1]", { stop: ["a", 1] }],
    ["tools", { tools: {} }],
    ["tools[0]", { tools: ["x"] }],
    ["tools[0].type", { tools: [{ function: { name: "x" } }] }],
    ["tool_choice", { tool_choice: 1 }],
    ["tool_choice", { tool_choice: [] }],
    ["response_format", { response_format: "json" }],
    ["response_format", { response_format: {} }],
    ["user", { user: 1 }],
    ["reasoning_effort", { reasoning_effort: 3 }],
    ["session_id", { session_id: 3 }],
    ["session_id", { session_id: "x".repeat(257) }],
    ["models", { models: "a" }],
    ["models[1]", { models: ["a", 1] }],
    ["provider", { provider: "acme" }],
    ["trace", { trace: [] }],
    ["metadata", { metadata: "x" }],
  ];
  test.each(rows)("%s", (param, change) => {
    const error = refusal({ ...valid, ...change });
    expect(error?.code).toBe("bad_request");
    expect(error?.param).toBe(param);
    expect(error?.message).toStartWith(param);
  });
});

describe("checkChatRequest accepts", () => {
  const rows: [what: string, change: object][] = [
    ["a minimal request", {}],
    [
      "null for absent fields",
      {
        temperature: null,
        top_p: null,
        max_tokens: null,
        max_completion_tokens: null,
        n: null,
        stop: null,
        stream: null,
        stream_options: null,
        tools: null,
        tool_choice: null,
        response_format: null,
        seed: null,
        user: null,
        models: null,
        reasoning_effort: null,
        session_id: null,
        provider: null,
        trace: null,
        logprobs: null,
        top_logprobs: null,
        metadata: null,
      },
    ],
    [
      "bounds",
      {
        temperature: 2,
        top_p: 0,
        n: 128,
        seed: -5,
        top_logprobs: 20,
        frequency_penalty: -2,
        session_id: "x".repeat(256),
      },
    ],
    [
      "an assistant turn with only calls",
      message({ role: "assistant", tool_calls: [{ id: "a", function: { name: "f" } }] }),
    ],
    ["an empty assistant turn", message({ role: "assistant" })],
    ["null content", message({ role: "assistant", content: null })],
    [
      "every role",
      {
        messages: ["developer", "system", "user", "assistant", "tool", "function"].map((role) => ({
          role,
          content: [],
          ...(role === "tool" && { tool_call_id: "a" }),
          ...(role === "function" && { name: "f" }),
        })),
      },
    ],
    ["stop as a list", { stop: ["a", "b", "c", "d"] }],
    [
      "tools of any type",
      {
        tools: [{ type: "function", function: { name: "f" } }, { type: "web_search" }],
        tool_choice: "auto",
      },
    ],
    ["unknown fields", { x_foo: { deep: [1] } }],
    ["an effort of the model", { reasoning_effort: "ludicrous" }],
  ];
  test.each(rows)("%s", (_what, change) => {
    expect(refusal({ ...valid, ...change })).toBeUndefined();
  });
});

test("checkChatRequest takes microseconds for a typical body", async () => {
  const body: Record<string, unknown> = {
    model: "acme/large",
    temperature: 0.7,
    stream: true,
    max_tokens: 500,
    stream_options: { include_usage: true },
    user: "u-1",
    messages: [
      { role: "system", content: "x".repeat(300) },
      { role: "user", content: "y".repeat(300) },
      {
        role: "assistant",
        content: "z".repeat(300),
      },
    ],
  };
  // The first call has the check compiled, which the next ones use.
  checkChatRequest(body);
  await compiledCheck(chatRequestSchema);
  await Bun.sleep(0);
  const work = { calls: 50, batches: 50 };
  const eachMicroseconds = leastMicroseconds(() => checkChatRequest(body), work);
  console.log(`checkChatRequest: ${eachMicroseconds.toFixed(3)} µs`);
  expect(eachMicroseconds).toBeLessThan(200);
});

const untyped = { function: { name: "look" } };
const call = { id: "1", function: { name: "look", arguments: "{}" } };

test("functions, calls and the choice of a function are told to be functions", () => {
  const body = {
    model: "a/b",
    messages: [{ role: "user" }, { role: "assistant", tool_calls: [call, { type: "custom" }] }],
    tools: [untyped, { type: "web_search" }, { type: null, ...untyped }],
    tool_choice: untyped,
  };
  expect(withToolTypes(body)).toEqual({
    model: "a/b",
    messages: [
      { role: "user" },
      { role: "assistant", tool_calls: [{ ...call, type: "function" }, { type: "custom" }] },
    ],
    tools: [
      { ...untyped, type: "function" },
      { type: "web_search" },
      { ...untyped, type: "function" },
    ],
    tool_choice: { ...untyped, type: "function" },
  });
});

test("custom tools in the form of Responses are nested", () => {
  const grammar = { syntax: "lark", definition: "start: A" };
  const nested = { type: "function", ...untyped };
  const flat = {
    tools: [
      nested,
      { type: "custom", name: "ApplyPatch", format: { type: "grammar", ...grammar } },
      { type: "custom", name: "note", description: "Notes it.", cache_control: {} },
    ],
    tool_choice: { type: "custom", name: "ApplyPatch" },
  };
  expect(withToolTypes(flat)).toEqual({
    tools: [
      nested,
      { type: "custom", custom: { name: "ApplyPatch", format: { type: "grammar", grammar } } },
      { type: "custom", custom: { name: "note", description: "Notes it." }, cache_control: {} },
    ],
    tool_choice: { type: "custom", custom: { name: "ApplyPatch" } },
  });
});

test.each([
  [{ messages: [{ role: "user" }, "odd"], tools: [{ type: "function", ...untyped }] }],
  [{ tools: [{ name: "look" }, 5], tool_choice: "auto", messages: "odd" }],
  [{ tools: {}, tool_choice: {} }],
])("anything else stays as it came: %j", (body) => {
  expect(withToolTypes(body)).toBeUndefined();
});
