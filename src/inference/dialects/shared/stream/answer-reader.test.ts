import { describe, expect, test } from "bun:test";
import { adaptIn, routeIn } from "../../../../../test/support/in-process.ts";
import type { Adapter } from "../../../pipeline/inference-call.ts";
import type { MeteredUsage } from "../../../canonical/response.ts";
import type { SseEvent } from "./stream-relay.ts";

type Fields = Record<string, unknown>;

/** What is said in pieces, and the same as a whole. */
type Answer = readonly [what: string, pieces: readonly Fields[], whole: readonly Fields[]];

/** How one dialect says an answer, without usage. */
interface Wire {
  /** A client of another dialect. */
  other: "openai-chat" | "anthropic-messages";
  answers: readonly Answer[];
  events(pieces: readonly Fields[]): readonly Fields[];
  whole(said: readonly Fields[]): Fields;
}

type Upstream = "openai-chat" | "anthropic-messages" | "openai-responses" | "google-generate";

const bodies: Readonly<Record<Upstream, Fields>> = {
  "openai-chat": { messages: [{ role: "user", content: "Hi" }] },
  "anthropic-messages": { messages: [{ role: "user", content: "Hi" }], max_tokens: 100 },
  "openai-responses": { input: "Hi" },
  "google-generate": { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

const adapterOf = (client: Upstream, upstream: Upstream, stream: boolean): Adapter =>
  adaptIn(client, {
    body: {
      model: "acme/large",
      ...bodies[client],
      ...(client !== "google-generate" && { stream }),
    },
    route: routeIn(upstream),
  });

const thought = (text: string): Fields => ({
  reasoning_details: [{ type: "reasoning.text", text, index: 0 }],
});
const call = (said: Fields): Fields => ({
  tool_calls: [{ index: 0, id: "call_1", type: "function", function: said }],
});
const thinkingPart = {
  content: [{ type: "thinking", thinking: [{ type: "text", text: "Well, then" }] }],
};
const twice = { reasoning: "Well, then", ...thought("Well, then") };
const picture = { images: [{ image_url: { url: "data:image/png;base64,AAAA" } }] };

const chatChunk = (delta: Fields, finish: string | null): Fields => ({
  id: "up",
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const chat: Wire = {
  other: "anthropic-messages",
  answers: [
    ["text", [{ content: "Once upon" }, { content: " a time" }], [{ content: "Once upon a time" }]],
    ["reasoning_content", [{ reasoning_content: "Well" }], [{ reasoning_content: "Well" }]],
    [
      "reasoning_details alone",
      [thought("Once upon"), thought(" a time there was")],
      [thought("Once upon a time there was")],
    ],
    ["reasoning in two fields", [twice], [twice]],
    ["thinking within the content", [thinkingPart], [thinkingPart]],
    [
      "calls in pieces",
      [
        call({ name: "look_up", arguments: "" }),
        call({ arguments: '{"a":' }),
        call({ arguments: "1}" }),
      ],
      [call({ name: "look_up", arguments: '{"a":1}' })],
    ],
    ["pictures alone", [picture], [{ content: "", ...picture }]],
  ],
  events: (deltas) => [...deltas.map((delta) => chatChunk(delta, null)), chatChunk({}, "stop")],
  whole: ([message]) => ({
    id: "up",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
  }),
};

/** The events of a block of a message: its start with these members, and its deltas. */
const block = (content: Fields, ...deltas: readonly Fields[]): Fields[] => [
  { type: "content_block_start", index: 0, content_block: content },
  ...deltas.map((delta) => ({ type: "content_block_delta", index: 0, delta })),
  { type: "content_block_stop", index: 0 },
];
const inputDelta = (json: string): Fields => ({ type: "input_json_delta", partial_json: json });
const emptyThought = { type: "thinking", thinking: "", signature: "" };
const seal = { type: "signature_delta", signature: "c2Vh" };
const toolUse = { type: "tool_use", id: "toolu_1", name: "look_up", input: {} };
const redacted = { type: "redacted_thinking", data: "c2VhbA==" };
const search = { type: "web_search_tool_result", tool_use_id: "s", content: [] };

const messages: Wire = {
  other: "openai-chat",
  answers: [
    [
      "text",
      block(
        { type: "text", text: "" },
        { type: "text_delta", text: "Once upon" },
        { type: "text_delta", text: " a time" },
      ),
      [{ type: "text", text: "Once upon a time" }],
    ],
    [
      "thinking with its signature",
      block(emptyThought, { type: "thinking_delta", thinking: "Well, then" }, seal),
      [{ type: "thinking", thinking: "Well, then", signature: "c2Vh" }],
    ],
    [
      "thinking of which only the signature is shown",
      block(emptyThought, seal),
      [{ type: "thinking", thinking: "", signature: "c2Vh" }],
    ],
    ["redacted thinking", block(redacted), [redacted]],
    [
      "a call in pieces",
      block(toolUse, inputDelta('{"a":'), inputDelta("1}")),
      [{ ...toolUse, input: { a: 1 } }],
    ],
    ["a tool that the provider ran", block(search), [search]],
  ],
  events: (pieces) => [
    { type: "message_start", message: { id: "up", role: "assistant", content: [] } },
    ...pieces,
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" },
  ],
  whole: (content) => ({ id: "up", type: "message", content, stop_reason: "end_turn" }),
};

/** The events of an output item: its start with these members, further events, and its end. */
const item = (begun: Fields, more: readonly Fields[], done: Fields): Fields[] => [
  { type: "response.output_item.added", output_index: 0, item: begun },
  ...more.map((event) => ({ output_index: 0, ...event })),
  { type: "response.output_item.done", output_index: 0, item: { ...begun, ...done } },
];
const delta = (kind: string, said: string): Fields => ({
  type: `response.${kind}.delta`,
  delta: said,
});
const message = { id: "msg_1", type: "message", role: "assistant", content: [] };
const reasoning = { id: "rs_1", type: "reasoning", summary: [] };
const functionCall = { id: "fc_1", type: "function_call", call_id: "c", name: "look_up" };
const customCall = { id: "ct_1", type: "custom_tool_call", call_id: "c", name: "look_up" };
const said = (text: string): Fields => ({ content: [{ type: "output_text", text }] });
const summary = (text: string): Fields => ({ summary: [{ type: "summary_text", text }] });
const webSearch = { id: "ws_1", type: "web_search_call", status: "completed" };

const responses: Wire = {
  other: "openai-chat",
  answers: [
    [
      "text",
      item(
        message,
        [delta("output_text", "Once upon"), delta("output_text", " a time")],
        said("Once upon a time"),
      ),
      [{ ...message, ...said("Once upon a time") }],
    ],
    [
      "text that only the last event has",
      item(message, [], said("Once")),
      [{ ...message, ...said("Once") }],
    ],
    [
      "a refusal",
      item(message, [delta("refusal", "No, thanks")], {
        content: [{ type: "refusal", refusal: "No, thanks" }],
      }),
      [{ ...message, content: [{ type: "refusal", refusal: "No, thanks" }] }],
    ],
    [
      "a summary",
      item(reasoning, [delta("reasoning_summary_text", "Well, then")], summary("Well, then")),
      [{ ...reasoning, ...summary("Well, then") }],
    ],
    [
      "sealed reasoning",
      item(reasoning, [], { encrypted_content: "c2Vh" }),
      [{ ...reasoning, encrypted_content: "c2Vh" }],
    ],
    [
      "a call in pieces",
      item(
        { ...functionCall, arguments: "" },
        [delta("function_call_arguments", '{"a":'), delta("function_call_arguments", "1}")],
        { arguments: '{"a":1}' },
      ),
      [{ ...functionCall, arguments: '{"a":1}' }],
    ],
    [
      "a call that only the last event has",
      item({ ...functionCall, arguments: "" }, [], { arguments: '{"a":1}' }),
      [{ ...functionCall, arguments: '{"a":1}' }],
    ],
    [
      "a call of a custom tool",
      item({ ...customCall, input: "" }, [delta("custom_tool_call_input", "Hi")], { input: "Hi" }),
      [{ ...customCall, input: "Hi" }],
    ],
    ["a tool that the provider ran", item(webSearch, [], {}), [webSearch]],
  ],
  events: (pieces) => [
    { type: "response.created", response: { id: "up", status: "in_progress", output: [] } },
    ...pieces,
    { type: "response.completed", response: { id: "up", status: "completed", output: [] } },
  ],
  whole: (output) => ({ id: "up", object: "response", status: "completed", output }),
};

const functionPart = { functionCall: { name: "look_up", args: { a: 1 } } };
const image = { inlineData: { mimeType: "image/png", data: "AAAA" } };
const code = { executableCode: { language: "PYTHON", code: "1 + 1" } };

const generate: Wire = {
  other: "openai-chat",
  answers: [
    ["text", [{ text: "Once upon" }, { text: " a time" }], [{ text: "Once upon a time" }]],
    ["thoughts", [{ text: "Well, then", thought: true }], [{ text: "Well, then", thought: true }]],
    [
      "a seal on text",
      [{ text: "Hi" }, { text: "", thoughtSignature: "c2Vh" }],
      [{ text: "Hi", thoughtSignature: "c2Vh" }],
    ],
    ["a call", [functionPart], [functionPart]],
    ["a picture", [image], [image]],
    ["code that the provider ran", [code], [code]],
  ],
  events: (parts) => [
    ...parts.map((part) => ({ candidates: [{ content: { parts: [part] }, index: 0 }] })),
    { candidates: [{ content: { parts: [{ text: "" }] }, finishReason: "STOP", index: 0 }] },
  ],
  whole: (parts) => ({ candidates: [{ content: { parts }, finishReason: "STOP", index: 0 }] }),
};

const wires: Readonly<Record<Upstream, Wire>> = {
  "openai-chat": chat,
  "anthropic-messages": messages,
  "openai-responses": responses,
  "google-generate": generate,
};

/** What is charged of a stream without usage. */
async function streamed(adapter: Adapter, events: readonly SseEvent[]): Promise<MeteredUsage> {
  const relay = adapter.createRelay({
    shown: { id: "shown", model: "acme/large" },
    inputTokens: 5,
    windowTokens: 1_000,
    fallback: undefined,
    settle: () => Promise.resolve({ chargedNano: 1n }),
    metadataText: () => "{}",
  });
  for (const event of events) await relay.accept(event);
  if (!relay.ended) await relay.finish();
  expect(relay.hasContent).toBe(true);
  return relay.metered();
}

const rows = (Object.keys(wires) as Upstream[]).flatMap((upstream) =>
  wires[upstream].answers.map((answer) => [upstream, answer[0], answer] as const),
);

describe("passthrough and translation estimate alike:", () => {
  test.each(rows)("%s, %s, streamed", async (upstream, _, [, pieces]) => {
    const { events, other } = wires[upstream];
    const sent = events(pieces).map((event): SseEvent => ({ data: JSON.stringify(event) }));
    const kept = await streamed(adapterOf(upstream, upstream, true), sent);
    expect(kept).toEqual(await streamed(adapterOf(other, upstream, true), sent));
    expect(kept.estimated).toBe(true);
    expect(kept.usage.outputTokens).toBeGreaterThan(0);
  });

  test.each(rows)("%s, %s, whole", (upstream, _, [, , whole]) => {
    const { other, whole: wholeOf } = wires[upstream];
    const body = wholeOf(whole);
    const read = (adapter: Adapter): unknown => {
      const { outputCharacters, hasContent, spentOnReasoning } =
        adapter.readWhole(JSON.stringify(body), body) ?? {};
      return { outputCharacters, hasContent, spentOnReasoning };
    };
    const kept = read(adapterOf(upstream, upstream, false));
    expect(kept).toEqual(read(adapterOf(other, upstream, false)));
    expect(kept).toMatchObject({ hasContent: true });
  });
});
