import { expect, test } from "bun:test";
import type { SandboxDialect } from "../dialect.ts";
import { completePrompt } from "../prompt.ts";
import { simulate } from "../simulate.ts";
import { anthropicMessages, openaiChat, openaiResponses } from "./client-dialects.ts";
import { googleGenerate } from "./google-generate.ts";

const facts = { seed: "0123456789abcdef", createdAtSeconds: 1_700_000_000 };
const target = (action: string) => ({
  pathModel: "m",
  pathAction: action,
  query: new URLSearchParams("alt=sse"),
});

interface Answered {
  whole: unknown;
  /** Data of each event. */
  events: unknown[];
  /** Names of the events, where the dialect names them. */
  names: string[];
}

function answered(
  dialect: SandboxDialect,
  body: unknown,
  action = "streamGenerateContent",
): Answered {
  const request = dialect.read(body, target(action));
  const reply = simulate(completePrompt(request.prompt, facts));
  const wires = [...request.events(reply)].map((event) => event.wire);
  const dataOf = (wire: string): string => wire.slice(wire.indexOf("data: ") + 6);
  return {
    whole:
      dialect === googleGenerate
        ? dialect.read(body, target("generateContent")).whole(reply)
        : request.whole(reply),
    events: wires
      .map(dataOf)
      .filter((data) => data.startsWith("{"))
      .map((data): unknown => JSON.parse(data)),
    names: wires.flatMap((wire) => /^event: (.*)$/m.exec(wire)?.[1] ?? []),
  };
}

/** Runs of the same name folded into one. */
const folded = (names: string[]): string[] =>
  names.filter((name, index) => name !== names[index - 1]);

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const cityArguments = { city: "simulated city" };
const cityText = JSON.stringify(cityArguments);

test("chat: role first, deltas, finish, usage last, then [DONE]", () => {
  const body = {
    model: "m",
    stream: true,
    stream_options: { include_usage: true },
    reasoning_effort: "low",
    messages: [
      { role: "system", content: "Be short." },
      { role: "user", content: [{ type: "text", text: "Hi" }] },
    ],
  };
  const { events } = answered(openaiChat, body);
  expect(events[0]).toMatchObject({
    choices: [{ index: 0, delta: { role: "assistant", content: "" } }],
    usage: null,
  });
  expect(events[1]).toMatchObject({
    choices: [{ delta: { reasoning_content: "Simu" }, finish_reason: null }],
  });
  expect(events.at(-2)).toMatchObject({ choices: [{ delta: {}, finish_reason: "stop" }] });
  expect(events.at(-1)).toMatchObject({
    id: "chatcmpl-0123456789abcdef",
    choices: [],
    usage: { prompt_tokens: 3, completion_tokens_details: { reasoning_tokens: 8 } },
  });
  const request = openaiChat.read(body, target(""));
  expect([...request.events(simulate(completePrompt(request.prompt, facts)))].at(-1)?.wire).toBe(
    "data: [DONE]\n\n",
  );
});

test("chat: a tool call starts with id and name, later deltas have only arguments", () => {
  const tools = [{ type: "function", function: { name: "look", parameters: schema } }];
  const { events } = answered(openaiChat, {
    model: "m",
    messages: [{ role: "user", content: "Hi" }],
    tools,
  });
  const head = {
    index: 0,
    id: "call_0123456789abcdef00",
    type: "function",
    function: { name: "look", arguments: "" },
  };
  expect(events[1]).toMatchObject({ choices: [{ delta: { tool_calls: [head] } }] });
  expect(events[2]).toHaveProperty("choices.0.delta", {
    tool_calls: [{ index: 0, function: { arguments: cityText.slice(0, 4) } }],
  });
  expect(events.at(-1)).toHaveProperty("choices.0.finish_reason", "tool_calls");
});

test("messages: blocks follow one another, thinking with its signature first", () => {
  const body = {
    model: "m",
    max_tokens: 500,
    messages: [{ role: "user", content: "Hi" }],
    thinking: { type: "enabled", budget_tokens: 1024 },
    tools: [
      { name: "look", input_schema: schema },
      { type: "web_search_20250305", name: "web_search" },
    ],
  };
  const { whole, events, names } = answered(anthropicMessages, body);
  expect(folded(names)).toEqual([
    "message_start",
    "ping",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  expect(events.at(-2)).toMatchObject({
    delta: { stop_reason: "tool_use" },
    usage: { input_tokens: expect.any(Number) },
  });
  expect(whole).toMatchObject({
    type: "message",
    stop_reason: "tool_use",
    content: [
      { type: "thinking", signature: expect.any(String) },
      { type: "tool_use", id: "toolu_0123456789abcdef00", name: "look", input: cityArguments },
    ],
  });
});

test("messages: omitted thinking keeps its signature", () => {
  const thinking = { type: "adaptive", display: "omitted" };
  const body = {
    model: "m",
    max_tokens: 500,
    messages: [{ role: "user", content: "Hi" }],
    thinking,
  };
  const { whole, events } = answered(anthropicMessages, body);
  expect(whole).toMatchObject({ content: [{ type: "thinking", thinking: "" }, { type: "text" }] });
  expect(events[3]).toMatchObject({ delta: { type: "signature_delta" } });
});

test("messages: stop sequence, token limit and cached input are reported", () => {
  const base = {
    model: "m",
    max_tokens: 500,
    messages: [{ role: "user", content: "Hi sandbox:cached_tokens=2" }],
  };
  expect(answered(anthropicMessages, { ...base, stop_sequences: [" by"] }).whole).toMatchObject({
    stop_reason: "stop_sequence",
    stop_sequence: " by",
    usage: { input_tokens: 5, cache_read_input_tokens: 2, cache_creation_input_tokens: 0 },
  });
  expect(answered(anthropicMessages, { ...base, max_tokens: 1 }).whole).toMatchObject({
    stop_reason: "max_tokens",
    content: [{ text: "[sim" }],
    usage: { output_tokens: 1 },
  });
  expect(answered(anthropicMessages, { ...base, max_tokens: 0 }).whole).toMatchObject({
    content: [],
  });
});

test("messages: tool results get a text response, also beside other text", () => {
  const body = {
    model: "m",
    max_tokens: 500,
    tools: [{ name: "look", input_schema: schema }],
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "look", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "found it" }] },
          { type: "text", text: "A reminder." },
        ],
      },
    ],
  };
  expect(answered(anthropicMessages, body).whole).toMatchObject({
    content: [{ text: expect.stringContaining("found it") }],
  });
});

test("responses: every item is added, filled and done; sequence numbers have no gaps", () => {
  const body = {
    model: "m",
    input: [{ role: "user", content: "Hi" }],
    reasoning: { effort: "low" },
  };
  const { events, names } = answered(openaiResponses, body);
  expect(folded(names)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  expect(events.map((event) => Reflect.get(Object(event), "sequence_number"))).toEqual(
    events.map((_, index) => index),
  );
});

test("responses: refuses a previous response and echoes the request's settings", () => {
  expect(() =>
    answered(openaiResponses, { model: "m", input: "x", previous_response_id: "resp_1" }),
  ).toThrow("not found");
  expect(
    answered(openaiResponses, {
      model: "m",
      input: "x",
      temperature: 0.3,
      instructions: "Be kind.",
    }).whole,
  ).toMatchObject({
    temperature: 0.3,
    instructions: "Be kind.",
    tools: [],
    status: "completed",
    output: [{ type: "message" }],
  });
});

test("responses: a call output gets a text response", () => {
  const input = [
    { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] },
    { type: "function_call", call_id: "c", name: "look", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: "found it" },
  ];
  const tools = [{ type: "function", name: "look", parameters: schema }];
  expect(answered(openaiResponses, { model: "m", input, tools }).whole).toMatchObject({
    output: [{ content: [{ text: expect.stringContaining("found it") }] }],
  });
});

test("google: usage grows with every chunk, and the last chunk has the finish reason", () => {
  const body = {
    contents: [
      {
        role: "user",
        parts: [{ text: "Hi" }, { inlineData: { mimeType: "image/png", data: "" } }],
      },
    ],
    generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: "LOW" } },
  };
  const { whole, events } = answered(googleGenerate, body);
  expect(events[0]).toMatchObject({
    candidates: [{ content: { parts: [{ text: "Simu", thought: true }] } }],
    usageMetadata: { promptTokenCount: 257, candidatesTokenCount: 0, thoughtsTokenCount: 1 },
  });
  expect(events.at(-1)).toMatchObject({ candidates: [{ finishReason: "STOP", index: 0 }] });
  expect(Reflect.get(Object(events.at(-1)), "usageMetadata")).toEqual(
    Reflect.get(Object(whole), "usageMetadata"),
  );
});

test("google: a function call is sent whole and ends with STOP", () => {
  const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
  const tools = [{ functionDeclarations: [{ name: "look", parametersJsonSchema: schema }] }];
  const { whole, events } = answered(googleGenerate, { contents, tools });
  const part = {
    functionCall: { id: "call_0123456789abcdef00", name: "look", args: cityArguments },
  };
  expect(events[0]).toHaveProperty("candidates.0.content.parts", [part]);
  expect(whole).toMatchObject({
    candidates: [{ content: { parts: [part] }, finishReason: "STOP" }],
  });
  const after = [
    ...contents,
    { role: "user", parts: [{ functionResponse: { name: "look", response: { ok: 1 } } }] },
  ];
  expect(answered(googleGenerate, { contents: after, tools }).whole).toMatchObject({
    candidates: [
      { content: { parts: [{ text: expect.stringContaining('The tool returned: "{"ok":1}"') }] } },
    ],
  });
});

test("google: refuses an unsupported method", () => {
  expect(() => answered(googleGenerate, { contents: [] }, "embedContent")).toThrow("embedContent");
});
