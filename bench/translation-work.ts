import type { DialectId } from "../src/inference/canonical/dialect-id.ts";

/** Dialects that clients speak, and that upstreams do. */
export const clients = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
] as const satisfies readonly DialectId[];
export const upstreams = [...clients, "google-generate"] as const satisfies readonly DialectId[];

export type ClientName = (typeof clients)[number];
export type UpstreamName = (typeof upstreams)[number];

const prose =
  "Tell me, in plain words, how a marshalling yard sorts its wagons onto the tracks they leave by. ".repeat(
    9,
  );

/** Path of a client's route below the API's base. */
export const pathOf: Readonly<Record<ClientName, string>> = {
  "openai-chat": "/chat/completions",
  "anthropic-messages": "/messages",
  "openai-responses": "/responses",
};

/** A request of 1 KB in a client's dialect. */
export function requestOf(
  client: ClientName,
  { model, stream }: { model: string; stream: boolean },
): Record<string, unknown> {
  const common = { model, stream, temperature: 0.5 };
  if (client === "openai-responses")
    return { ...common, max_output_tokens: 200, input: prose, store: false };
  return { ...common, max_tokens: 200, messages: [{ role: "user", content: prose }] };
}

const pieces = Array.from({ length: 100 }, (_, index) => `word ${index} `);
const said = "Hello there, ".repeat(32);

type Fields = Record<string, unknown>;

/** Random characters of some length, with which OpenAI hides how long a text is. */
const obfuscation = (index: number): string => "aZ09kQ7xLmPw3Rt5".slice(0, (index * 7) % 16);

const frame = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const named = (type: string, fields: Fields): string => frame({ type, ...fields }, type);
/** The same with the spaces before the last brace with which Anthropic hides how long a text is. */
const padded = (type: string, fields: Fields, index: number): string =>
  named(type, fields).replace(/\}\n\n$/, `${" ".repeat((index * 5) % 14)}}\n\n`);

const chatHead = {
  id: "chatcmpl-abc123",
  created: 1_700_000_000,
  model: "large-v2",
  system_fingerprint: "fp_0123456789",
};
const chatUsage = { prompt_tokens: 120, completion_tokens: 90, total_tokens: 210 };

function chatFrames(): string[] {
  const chunk = (delta: Fields, { index = 0, finish = null as string | null } = {}) =>
    frame({
      ...chatHead,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      usage: null,
      obfuscation: obfuscation(index),
    });
  return [
    chunk({ role: "assistant", content: "" }),
    ...pieces.map((content, index) => chunk({ content }, { index })),
    chunk({}, { finish: "stop" }),
    frame({ ...chatHead, object: "chat.completion.chunk", choices: [], usage: chatUsage }),
    frame("[DONE]"),
  ];
}

const message = {
  id: "msg_abc123",
  type: "message",
  role: "assistant",
  model: "large-v2",
  stop_sequence: null,
};
const messageUsage = {
  input_tokens: 120,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 90,
};

const messageFrames = (): string[] => [
  named("message_start", {
    message: {
      ...message,
      content: [],
      stop_reason: null,
      usage: { ...messageUsage, output_tokens: 1 },
    },
  }),
  named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  ...pieces.map((text, index) =>
    padded("content_block_delta", { index: 0, delta: { type: "text_delta", text } }, index),
  ),
  named("content_block_stop", { index: 0 }),
  named("message_delta", {
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 90 },
  }),
  named("message_stop", {}),
];

const responseUsage = {
  input_tokens: 120,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 90,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 210,
};
const responseOf = (text: string, status: string): Fields => ({
  id: "resp_abc123",
  object: "response",
  created_at: 1_700_000_000,
  status,
  error: null,
  model: "large-v2",
  output: status === "completed" ? [itemOf(text)] : [],
  usage: status === "completed" ? responseUsage : null,
});
const partOf = (text: string): Fields => ({
  type: "output_text",
  text,
  annotations: [],
  logprobs: [],
});
const itemOf = (text: string): Fields => ({
  id: "msg_abc123",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [partOf(text)],
});

function responseFrames(): string[] {
  const whole = pieces.join("");
  const at = { item_id: "msg_abc123", output_index: 0, content_index: 0 };
  const events: [string, Fields][] = [
    ["response.created", { response: responseOf("", "in_progress") }],
    ["response.in_progress", { response: responseOf("", "in_progress") }],
    [
      "response.output_item.added",
      { output_index: 0, item: { ...itemOf(""), status: "in_progress", content: [] } },
    ],
    ["response.content_part.added", { ...at, part: partOf("") }],
    ...pieces.map((delta, index): [string, Fields] => [
      "response.output_text.delta",
      { ...at, delta, logprobs: [], obfuscation: obfuscation(index) },
    ]),
    ["response.output_text.done", { ...at, text: whole, logprobs: [] }],
    ["response.content_part.done", { ...at, part: partOf(whole) }],
    ["response.output_item.done", { output_index: 0, item: itemOf(whole) }],
    ["response.completed", { response: responseOf(whole, "completed") }],
  ];
  return events.map(([type, fields], index) => named(type, { sequence_number: index, ...fields }));
}

const geminiUsage = { promptTokenCount: 120, candidatesTokenCount: 90, totalTokenCount: 210 };
const geminiChunk = (text: string, more: Fields = {}): Fields => ({
  candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0, ...more }],
  usageMetadata: geminiUsage,
  modelVersion: "large-v2",
  responseId: "abc123",
});

const wholes: Readonly<Record<UpstreamName, Fields>> = {
  "openai-chat": {
    ...chatHead,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: said, refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: chatUsage,
  },
  "anthropic-messages": {
    ...message,
    content: [{ type: "text", text: said }],
    stop_reason: "end_turn",
    usage: messageUsage,
  },
  "openai-responses": responseOf(said, "completed"),
  "google-generate": geminiChunk(said, { finishReason: "STOP" }),
};

/** A whole answer of some 700 bytes in an upstream's dialect. */
export const wholeAnswer = (upstream: UpstreamName): string => JSON.stringify(wholes[upstream]);

/** The frames of an answer of a hundred words in an upstream's dialect. */
export function answerFrames(upstream: UpstreamName): string[] {
  switch (upstream) {
    case "openai-chat":
      return chatFrames();
    case "anthropic-messages":
      return messageFrames();
    case "openai-responses":
      return responseFrames();
    case "google-generate":
      return [
        ...pieces.map((text) => frame(geminiChunk(text))),
        frame(geminiChunk("", { finishReason: "STOP" })),
      ];
  }
}
