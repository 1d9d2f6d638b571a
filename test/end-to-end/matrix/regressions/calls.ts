import {
  adds,
  candidate,
  chunk,
  messageOf,
  opens,
  responseOf,
  usageChunk,
  type StreamRow,
} from "./regression-row.ts";

const all = ["openai-chat", "anthropic-messages", "openai-responses"] as const;
const role = chunk({ role: "assistant", content: "" });
const ends = [chunk({}, "tool_calls"), usageChunk, "[DONE]"];
const called = (index: number, name: string, text: string) => ({
  id: `call_${index}`,
  name,
  arguments: text,
});
const functionCall = (index: number, fields: Record<string, unknown> = {}) => ({
  type: "function_call",
  id: `fc_${index}`,
  call_id: `call_${index}`,
  name: index === 0 ? "f" : "g",
  arguments: "",
  ...fields,
});
const thought = { type: "reasoning", id: "rs_1", summary: [] };
const added = (output_index: number, item: Record<string, unknown>) => ({
  type: "response.output_item.added",
  output_index,
  item,
});
const done = (output_index: number, item: Record<string, unknown>) => ({
  type: "response.output_item.done",
  output_index,
  item,
});
const argumentsDelta = (
  output_index: number,
  delta: string,
  more: Record<string, unknown> = {},
) => ({
  type: "response.function_call_arguments.delta",
  output_index,
  item_id: `fc_${output_index}`,
  delta,
  ...more,
});

/** Calls of tools in streams. */
export const callRows: readonly StreamRow[] = [
  {
    number: "C1",
    what: "two tool_use blocks after a text count as calls 0 and 1",
    upstream: "anthropic-messages",
    clients: all,
    sends: messageOf(
      [
        { start: { type: "text", text: "" }, deltas: [{ type: "text_delta", text: "Both." }] },
        {
          start: { type: "tool_use", id: "call_0", name: "f", input: {} },
          deltas: [{ type: "input_json_delta", partial_json: '{"x":1}' }],
        },
        {
          start: { type: "tool_use", id: "call_1", name: "g", input: {} },
          deltas: [{ type: "input_json_delta", partial_json: '{"y":2}' }],
        },
      ],
      { stop_reason: "tool_use" },
    ),
    means: {
      said: "Both.",
      calls: [called(0, "f", '{"x":1}'), called(1, "g", '{"y":2}')],
      finish: "tool_calls",
    },
    holds: { "openai-chat": ['"index":0,"id":"call_0"', '"index":1,"id":"call_1"'] },
  },
  {
    number: "C2",
    what: "two function calls after a thought count as calls 0 and 1",
    upstream: "openai-responses",
    clients: all,
    sends: responseOf(
      [
        added(0, thought),
        done(0, thought),
        added(1, functionCall(0)),
        argumentsDelta(1, '{"x":1}', { item_id: "fc_0" }),
        done(1, functionCall(0, { arguments: '{"x":1}' })),
        added(2, functionCall(1)),
        argumentsDelta(2, '{"y":2}', { item_id: "fc_1" }),
        done(2, functionCall(1, { arguments: '{"y":2}' })),
      ],
      {
        output: [
          thought,
          functionCall(0, { arguments: '{"x":1}' }),
          functionCall(1, { arguments: '{"y":2}' }),
        ],
      },
    ),
    means: { calls: [called(0, "f", '{"x":1}'), called(1, "g", '{"y":2}')], finish: "tool_calls" },
    holds: { "openai-chat": ['"index":0,"id":"call_0"', '"index":1,"id":"call_1"'] },
  },
  {
    number: "C3",
    upstream: "google-generate",
    clients: all,
    what: "Gemini's parallel calls in different chunks, without ids, get ids of their own",
    sends: [
      candidate([{ functionCall: { name: "f", args: { x: 1 } } }]),
      candidate([{ functionCall: { name: "f", args: { x: 2 } } }], { finishReason: "STOP" }),
    ],
    means: { finish: "tool_calls" },
    holds: { "openai-chat": ['"index":0,"id":"call_', '"index":1,"id":"call_'] },
  },
  {
    number: "C4",
    upstream: "anthropic-messages",
    clients: all,
    what: "a call with empty arguments keeps one index, and its arguments are an object",
    sends: messageOf([{ start: { type: "tool_use", id: "call_0", name: "f", input: {} } }], {
      stop_reason: "tool_use",
    }),
    means: { calls: [called(0, "f", "{}")], finish: "tool_calls" },
    lacks: { "openai-chat": ['"index":1'] },
  },
  {
    number: "C5",
    upstream: "openai-responses",
    clients: ["openai-chat", "anthropic-messages"],
    what: "arguments that come in .done alone are told in full",
    sends: responseOf(
      [
        added(0, functionCall(0)),
        {
          type: "response.function_call_arguments.done",
          output_index: 0,
          item_id: "fc_0",
          arguments: '{"x":1}',
        },
        done(0, functionCall(0, { arguments: '{"x":1}' })),
      ],
      { output: [functionCall(0, { arguments: '{"x":1}' })] },
    ),
    means: { calls: [called(0, "f", '{"x":1}')], finish: "tool_calls" },
  },
  {
    number: "C6",
    what: "a chunk that opens a call with all of its arguments loses none",
    upstream: "openai-chat",
    clients: all,
    sends: [role, chunk({ content: "So." }), chunk(opens(0, "f", '{"x":1}')), ...ends],
    means: { said: "So.", calls: [called(0, "f", '{"x":1}')], finish: "tool_calls" },
  },
  {
    number: "C7",
    what: "empty and null tool_calls beside content are none",
    upstream: "openai-chat",
    clients: all,
    sends: [
      role,
      chunk({ content: "So ", tool_calls: [] }),
      chunk({ content: "it is.", tool_calls: null }),
      chunk({}, "stop"),
      usageChunk,
      "[DONE]",
    ],
    means: { said: "So it is.", calls: [], finish: "stop" },
  },
  {
    number: "C8",
    what: "arguments that come while text is open go to their call",
    upstream: "openai-chat",
    clients: all,
    sends: [
      role,
      chunk(opens(0, "f")),
      chunk({ content: "Wait." }),
      chunk(adds(0, '{"x":1}')),
      ...ends,
    ],
    means: { said: "Wait.", calls: [called(0, "f", '{"x":1}')], finish: "tool_calls" },
  },
  {
    number: "C9",
    upstream: "openai-chat",
    clients: ["anthropic-messages", "openai-responses"],
    what: "a stream that begins with a call has no empty text before it",
    sends: [
      chunk({ role: "assistant", content: "", ...opens(0, "f") }),
      chunk(adds(0, "{}")),
      ...ends,
    ],
    means: { calls: [called(0, "f", "{}")], said: "" },
    sees: {
      "anthropic-messages": { content: [{ type: "tool_use", id: "call_0", name: "f", input: {} }] },
    },
    lacks: { "openai-responses": ['"type":"message"'] },
  },
  {
    number: "C10",
    what: "the finish after a call ends its block once",
    upstream: "openai-chat",
    clients: ["anthropic-messages"],
    sends: [role, chunk(opens(0, "f")), chunk(adds(0, '{"x":1}')), chunk({ content: "" }), ...ends],
    means: { calls: [called(0, "f", '{"x":1}')], finish: "tool_calls" },
  },
  {
    number: "C11",
    what: "arguments of a call that nobody announced are not told as text",
    upstream: "openai-chat",
    clients: ["anthropic-messages", "openai-responses"],
    sends: [
      role,
      chunk({ content: "So." }),
      chunk(adds(3, '{"x":1}')),
      chunk({}, "stop"),
      usageChunk,
      "[DONE]",
    ],
    means: { said: "So.", finish: "stop" },
  },
  {
    number: "C12",
    what: "interleaved calls are told one after another where blocks may not overlap",
    upstream: "openai-chat",
    clients: all,
    sends: [
      role,
      chunk(opens(0, "f")),
      chunk(opens(1, "g")),
      chunk(adds(0, '{"x"')),
      chunk(adds(1, '{"y"')),
      chunk(adds(0, ":1}")),
      chunk(adds(1, ":2}")),
      ...ends,
    ],
    means: { calls: [called(0, "f", '{"x":1}'), called(1, "g", '{"y":2}')], finish: "tool_calls" },
  },
  {
    number: "C13",
    upstream: "openai-chat",
    clients: ["anthropic-messages", "openai-responses"],
    what: "an end for calls without any is an end",
    sends: [role, chunk({ content: "So." }), ...ends],
    means: { said: "So.", calls: [], finish: "stop" },
  },
  {
    number: "C14",
    upstream: "openai-chat",
    clients: ["anthropic-messages", "openai-responses"],
    what: "calls that end with stop are to be run (chat)",
    sends: [role, chunk(opens(0, "f", "{}")), chunk({}, "stop"), usageChunk, "[DONE]"],
    means: { calls: [called(0, "f", "{}")], finish: "tool_calls" },
  },
  {
    number: "C14",
    what: "calls that end with STOP are to be run (Gemini)",
    upstream: "google-generate",
    clients: all,
    sends: [candidate([{ functionCall: { id: "call_0", name: "f" } }], { finishReason: "STOP" })],
    means: { calls: [called(0, "f", "{}")], finish: "tool_calls" },
  },
  {
    number: "C16",
    what: "a call without parameters has an empty object for arguments",
    upstream: "openai-chat",
    clients: ["anthropic-messages", "openai-responses"],
    sends: [role, chunk(opens(0, "f", "")), ...ends],
    means: { calls: [called(0, "f", "{}")], finish: "tool_calls" },
  },
  {
    number: "C17",
    what: "deltas that repeat name, id and all arguments so far add their ends alone",
    upstream: "openai-responses",
    clients: ["openai-chat", "anthropic-messages"],
    sends: responseOf(
      [
        added(0, functionCall(0)),
        argumentsDelta(0, '{"x"', { name: "f", call_id: "call_0" }),
        argumentsDelta(0, '{"x":1}', { name: "f", call_id: "call_0" }),
        done(0, functionCall(0, { arguments: '{"x":1}' })),
      ],
      { output: [functionCall(0, { arguments: '{"x":1}' })] },
    ),
    means: { calls: [called(0, "f", '{"x":1}')], finish: "tool_calls" },
  },
  {
    number: "C18",
    what: "the place of a block is not the number of a choice",
    upstream: "anthropic-messages",
    clients: ["openai-chat"],
    sends: messageOf(
      [
        { start: { type: "text", text: "" }, deltas: [{ type: "text_delta", text: "So." }] },
        { start: { type: "tool_use", id: "call_0", name: "f", input: {} } },
      ],
      { stop_reason: "tool_use" },
    ),
    means: { calls: [called(0, "f", "{}")], finish: "tool_calls" },
    lacks: { "openai-chat": ['"choices":[{"index":1'] },
  },
  {
    number: "C19",
    what: "a call without text makes no message",
    upstream: "anthropic-messages",
    clients: ["openai-responses"],
    sends: messageOf([{ start: { type: "tool_use", id: "call_0", name: "f", input: {} } }], {
      stop_reason: "tool_use",
    }),
    means: { calls: [called(0, "f", "{}")] },
    lacks: { "openai-responses": ['"type":"message"', "output_text.delta", "content_part"] },
  },
];
