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
const translated = ["anthropic-messages", "openai-responses"] as const;
const role = chunk({ role: "assistant", content: "" });
const stops = [chunk({}, "stop"), usageChunk, "[DONE]"];
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const plain = { input: 11, output: 7 };
const message = (index: number, text: string, more: Record<string, unknown> = {}) => ({
  type: "message",
  id: `msg_${index}`,
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
  ...more,
});
const told = (index: number, item: ReturnType<typeof message>, text: string) => [
  {
    type: "response.output_item.added",
    output_index: index,
    item: { ...item, status: "in_progress", content: [] },
  },
  {
    type: "response.content_part.added",
    output_index: index,
    item_id: item.id,
    content_index: 0,
    part: { ...item.content[0], text: "" },
  },
  {
    type: "response.output_text.delta",
    output_index: index,
    item_id: item.id,
    content_index: 0,
    delta: text,
  },
  {
    type: "response.output_text.done",
    output_index: index,
    item_id: item.id,
    content_index: 0,
    text,
  },
  {
    type: "response.content_part.done",
    output_index: index,
    item_id: item.id,
    content_index: 0,
    part: item.content[0],
  },
  { type: "response.output_item.done", output_index: index, item },
];

/** Thoughts, ends and usage in streams. */
export const endRows: readonly StreamRow[] = [
  {
    number: "C20",
    upstream: "openai-chat",
    clients: ["openai-responses"],
    what: "a thought before text is an item of its own, and an empty one is none",
    sends: [
      role,
      chunk({ reasoning_content: "" }),
      chunk({ reasoning_content: "Hm." }),
      chunk({ content: "So." }),
      ...stops,
    ],
    means: { thought: "Hm.", said: "So." },
    sees: { "openai-responses": { output: [{ type: "reasoning" }, { type: "message" }] } },
  },
  {
    number: "C20",
    what: "an empty thought alone makes no item",
    upstream: "openai-chat",
    clients: translated,
    sends: [role, chunk({ reasoning_content: "", content: "So." }), ...stops],
    means: { thought: "", said: "So." },
    lacks: { "openai-responses": ['"type":"reasoning"'], "anthropic-messages": ['"thinking"'] },
  },
  {
    number: "C21",
    what: "a chunk with a thought and text tells both, the thought first",
    upstream: "openai-chat",
    clients: translated,
    sends: [
      role,
      chunk({ reasoning_content: "Hm.", content: "So." }),
      chunk({ content: " It is." }),
      ...stops,
    ],
    means: { thought: "Hm.", said: "So. It is." },
  },
  {
    number: "C22",
    upstream: "openai-responses",
    clients: ["openai-chat", "anthropic-messages"],
    what: "two messages of one answer are not glued together",
    sends: responseOf(
      [...told(0, message(0, "Looking."), "Looking."), ...told(1, message(1, "Found."), "Found.")],
      {
        output: [message(0, "Looking."), message(1, "Found.")],
      },
    ),
    sees: { "openai-chat": { choices: [{ message: { content: "Looking.\n\nFound." } }] } },
  },
  {
    number: "C23",
    upstream: "openai-chat",
    clients: ["openai-responses"],
    what: "one id from the first event to the last, and the answer's own",
    sends: [role, chunk({ content: "So." }), ...stops],
    sees: { "openai-responses": { id: "answer_1" } },
    lacks: { "openai-responses": ['"c1"'] },
  },
  {
    number: "C24",
    upstream: "anthropic-messages",
    what: "the first event has the model and every member of a response, and texts are told done",
    clients: ["openai-responses"],
    sends: messageOf([
      { start: { type: "text", text: "" }, deltas: [{ type: "text_delta", text: "So." }] },
    ]),
    holds: {
      "openai-responses": [
        '"type":"response.created","response":{"id":"answer_1","object":"response"',
        '"type":"response.output_text.done"',
      ],
    },
  },
  {
    number: "C27",
    what: "a stop text that the upstream names is told",
    upstream: "openai-chat",
    clients: ["anthropic-messages"],
    sends: [
      role,
      chunk({ content: "So" }),
      {
        ...chunk({}),
        choices: [{ index: 0, delta: {}, finish_reason: "stop", stop_reason: "END" }],
      },
      usageChunk,
      "[DONE]",
    ],
    sees: { "anthropic-messages": { stop_reason: "stop_sequence", stop_sequence: "END" } },
  },
  {
    number: "C29",
    what: "a bound that was reached is length in every dialect",
    upstream: "anthropic-messages",
    clients: all,
    sends: messageOf(
      [{ start: { type: "text", text: "" }, deltas: [{ type: "text_delta", text: "So" }] }],
      { stop_reason: "max_tokens" },
    ),
    means: { finish: "length" },
  },
  {
    number: "C29",
    upstream: "anthropic-messages",
    clients: ["openai-chat", "openai-responses"],
    what: "a window that was exceeded is length",
    sends: messageOf(
      [{ start: { type: "text", text: "" }, deltas: [{ type: "text_delta", text: "So" }] }],
      { stop_reason: "model_context_window_exceeded" },
    ),
    means: { finish: "length" },
  },
  {
    number: "C30",
    what: "a filter is no stop (chat)",
    upstream: "openai-chat",
    clients: all,
    sends: [role, chunk({ content: "So" }), chunk({}, "content_filter"), usageChunk, "[DONE]"],
    means: { finish: "content_filter" },
  },
  {
    number: "C30",
    upstream: "anthropic-messages",
    clients: ["openai-chat"],
    what: "a refusal is no stop, and its explanation is told (Messages)",
    sends: messageOf([], {
      stop_reason: "refusal",
      stop_details: { type: "refusal", category: "cyber", explanation: "I will not." },
    }),
    means: { finish: "content_filter", refused: "I will not." },
  },
  {
    number: "C31",
    what: "an incomplete response is cut by length, and has its usage",
    upstream: "openai-responses",
    clients: all,
    sends: responseOf(told(0, message(0, "So"), "So"), {
      output: [message(0, "So")],
      end: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    }),
    means: { finish: "length", usage: { ...plain } },
  },
  {
    number: "C32",
    what: "without a finish, with [DONE] alone, the stream still ends",
    upstream: "openai-chat",
    clients: translated,
    sends: [role, chunk({ content: "So." }), "[DONE]"],
    means: { said: "So.", finish: "stop" },
  },
  {
    number: "C32",
    what: "with a finish and no usage the stream still ends",
    upstream: "openai-chat",
    clients: translated,
    sends: [role, chunk({ content: "So." }), chunk({}, "stop"), "[DONE]"],
    means: { said: "So.", finish: "stop" },
  },
  {
    number: "C32",
    what: "a stream of one chunk is a whole one",
    upstream: "openai-chat",
    clients: translated,
    sends: [chunk({ role: "assistant", content: "So." }, "stop", { usage })],
    means: { said: "So.", finish: "stop", usage: plain },
  },
  {
    number: "C33",
    upstream: "openai-chat",
    clients: all,
    what: "usage after the finish is told",
    sends: [role, chunk({ content: "So." }), ...stops],
    means: { finish: "stop", usage: plain },
  },
  {
    number: "C34",
    upstream: "openai-chat",
    clients: translated,
    what: "usage on the finish and again after it, without choices, counts once",
    sends: [
      role,
      chunk({ content: "So." }),
      chunk({}, "stop", { usage }),
      { id: "c1", object: "chat.completion.chunk", model: "m", usage },
      "[DONE]",
    ],
    means: { usage: plain },
  },
  {
    number: "C35",
    what: "Groq's usage counts",
    upstream: "openai-chat",
    clients: translated,
    sends: [
      role,
      chunk({ content: "So." }),
      chunk({}, "stop", { x_groq: { id: "req", usage } }),
      "[DONE]",
    ],
    means: { usage: plain },
  },
  {
    number: "C36",
    what: "what was cached is inside of the input once (Messages)",
    upstream: "anthropic-messages",
    clients: all,
    sends: [
      {
        type: "message_start",
        message: {
          id: "msg_1",
          type: "message",
          role: "assistant",
          content: [],
          model: "m",
          usage: {
            input_tokens: 10,
            cache_read_input_tokens: 100,
            cache_creation_input_tokens: 20,
            output_tokens: 1,
          },
        },
      },
      ...messageOf([
        { start: { type: "text", text: "" }, deltas: [{ type: "text_delta", text: "So." }] },
      ]).slice(1),
    ],
    means: { usage: { input: 130, output: 7, cached: 100, written: 20 } },
  },
  {
    number: "C37",
    what: "tokens of thoughts are inside of the output",
    upstream: "openai-chat",
    clients: all,
    sends: [
      role,
      chunk({ content: "So." }),
      chunk({}, "stop"),
      { ...usageChunk, usage: { ...usage, completion_tokens_details: { reasoning_tokens: 4 } } },
      "[DONE]",
    ],
    means: { usage: { ...plain, reasoning: 4 } },
  },
  {
    number: "C44",
    what: "[DONE] is for chat clients, once, whether the upstream sent it or not",
    upstream: "openai-chat",
    clients: all,
    sends: [role, chunk({ content: "So." }), chunk({}, "stop"), usageChunk],
    holds: { "openai-chat": ["data: [DONE]"] },
    lacks: { "anthropic-messages": ["[DONE]"], "openai-responses": ["[DONE]"] },
  },
  {
    number: "C52",
    what: "Azure's first chunk without choices harms nobody",
    upstream: "openai-chat",
    clients: translated,
    sends: [
      { id: "", object: "", created: 0, model: "", choices: [], prompt_filter_results: [{}] },
      role,
      chunk({ content: "So." }),
      ...stops,
    ],
    means: { said: "So.", finish: "stop" },
  },
  {
    number: "C53",
    upstream: "anthropic-messages",
    clients: ["openai-chat"],
    what: "the role comes first where the answer begins with a call",
    sends: messageOf([{ start: { type: "tool_use", id: "call_0", name: "f", input: {} } }], {
      stop_reason: "tool_use",
    }),
    holds: { "openai-chat": ['"delta":{"role":"assistant"'] },
  },
  {
    number: "C53",
    upstream: "google-generate",
    clients: ["openai-chat"],
    what: "the role comes first where the answer begins with a thought",
    sends: [
      candidate([{ text: "Hm.", thought: true }]),
      candidate([{ text: "So." }], { finishReason: "STOP" }),
    ],
    means: { thought: "Hm.", said: "So." },
  },
  {
    number: "C72",
    upstream: "google-generate",
    clients: ["anthropic-messages"],
    what: "a seal comes as signature_delta and not within the thought",
    sends: [
      candidate([{ text: "Hm.", thought: true, thoughtSignature: "c2Vh" }]),
      candidate([{ text: "So." }], { finishReason: "STOP" }),
    ],
    means: { thought: "Hm.", seals: ["gw1:acme:c2Vh"] },
    holds: {
      "anthropic-messages": ['"delta":{"type":"signature_delta","signature":"gw1:acme:c2Vh"}'],
    },
  },
  {
    number: "C79",
    what: "thoughts under the name of OpenRouter and vLLM are told",
    upstream: "openai-chat",
    clients: translated,
    sends: [role, chunk({ reasoning: "Hm." }), chunk({ content: "So." }), ...stops],
    means: { thought: "Hm.", said: "So." },
  },
  {
    number: "C79",
    what: "thoughts that are mirrored under two names are told once",
    upstream: "openai-chat",
    clients: translated,
    sends: [
      role,
      chunk({
        reasoning: "Hm.",
        reasoning_content: "Hm.",
        reasoning_details: [{ type: "reasoning.text", text: "Hm.", index: 0 }],
      }),
      chunk({ content: "So." }),
      ...stops,
    ],
    means: { thought: "Hm.", said: "So." },
  },
  {
    number: "C25",
    what: "a grammar's tool is called as one, although its upstream knows functions alone",
    upstream: "anthropic-messages",
    clients: ["openai-responses"],
    asked: {
      "openai-responses": {
        tools: [
          {
            type: "custom",
            name: "apply_patch",
            format: { type: "grammar", syntax: "lark", definition: "x" },
          },
        ],
      },
    },
    sends: messageOf(
      [
        {
          start: { type: "tool_use", id: "call_0", name: "apply_patch", input: {} },
          deltas: [{ type: "input_json_delta", partial_json: '{"input":"*** Begin"}' }],
        },
      ],
      { stop_reason: "tool_use" },
    ),
    sees: {
      "openai-responses": {
        output: [
          { type: "custom_tool_call", call_id: "call_0", name: "apply_patch", input: "*** Begin" },
        ],
      },
    },
    holds: {
      "openai-responses": [
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
      ],
    },
  },
  {
    number: "C63",
    what: "a tool's long name comes back as it was",
    upstream: "openai-chat",
    clients: ["anthropic-messages"],
    asked: {
      "anthropic-messages": {
        tools: [{ name: `mcp__server__${"x".repeat(80)}`, input_schema: { type: "object" } }],
      },
    },
    sends: [
      role,
      chunk(opens(0, "$LONG")),
      chunk(adds(0, "{}")),
      chunk({}, "tool_calls"),
      usageChunk,
      "[DONE]",
    ],
    means: { calls: [{ id: "call_0", name: `mcp__server__${"x".repeat(80)}`, arguments: "{}" }] },
  },
];
