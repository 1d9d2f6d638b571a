import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import type { ProviderDeviations } from "../../../../src/inference/catalog/model.ts";
import type { ClientName } from "../support/client-dialect.ts";
import type { Fields } from "../support/json-value.ts";
import type { Reply } from "../support/reply.ts";

/**
 * A numbered failure of other gateways (`C1` to `C86`), as a stream: what an upstream sends, what
 * its clients make of it.
 */
export interface StreamRow {
  number: string;
  what: string;
  upstream: DialectId;
  clients: readonly ClientName[];
  /** Data of the events; a text stands as it is. */
  sends: readonly (Fields | string)[];
  /** Members of the request that the answer is for. */
  asked?: Partial<Record<ClientName, Fields>>;
  /** What the client understands, in the words of no dialect. */
  means?: Partial<
    Pick<Reply, "said" | "refused" | "thought" | "seals" | "calls" | "finish" | "usage">
  >;
  /** Members of the answer that the stream adds up to, in the client's dialect. */
  sees?: Partial<Record<ClientName, Fields>>;
  /** What the bytes must hold, and what they must not. */
  holds?: Partial<Record<ClientName, readonly string[]>>;
  lacks?: Partial<Record<ClientName, readonly string[]>>;
}

/**
 * A numbered failure of other gateways as a request: what a client sends, what the upstream must
 * get.
 */
export interface RequestRow {
  number: string;
  what: string;
  client: ClientName;
  upstream: DialectId;
  sends: Fields;
  /** Members of the body that is sent upstream; what is undefined must be absent. */
  gets?: Fields;
  /** The field of a refusal in place of it. */
  refused?: string;
  deviations?: ProviderDeviations;
}

/** A chunk of a chat stream. */
export const chunk = (delta: Fields, finish: string | null = null, more: Fields = {}): Fields => ({
  id: "c1",
  object: "chat.completion.chunk",
  created: 1_763_700_000,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

/** The chunk with the usage of 11 tokens in and 7 out. */
export const usageChunk: Fields = {
  id: "c1",
  object: "chat.completion.chunk",
  created: 1_763_700_000,
  model: "m",
  choices: [],
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
};

/** A delta that opens a call. */
export const opens = (index: number, name: string, text = ""): Fields => ({
  tool_calls: [
    { index, id: `call_${index}`, type: "function", function: { name, arguments: text } },
  ],
});

/** A delta that adds to the arguments of a call. */
export const adds = (index: number, text: string): Fields => ({
  tool_calls: [{ index, function: { arguments: text } }],
});

/** A block of a Messages stream: its start, and what is added to it. */
export interface Block {
  start: Fields;
  deltas?: readonly Fields[];
}

/** The events of a Messages stream with these blocks and this end. */
export const messageOf = (
  blocks: readonly Block[],
  end: Fields = { stop_reason: "end_turn" },
): Fields[] => [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [],
      model: "m",
      usage: { input_tokens: 11, output_tokens: 1 },
    },
  },
  ...blocks.flatMap(({ start, deltas = [] }, index) => [
    { type: "content_block_start", index, content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ]),
  { type: "message_delta", delta: { stop_sequence: null, ...end }, usage: { output_tokens: 7 } },
  { type: "message_stop" },
];

const record: Fields = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "in_progress",
  output: [],
  usage: null,
};

/** The events of a Responses stream around these, with the items of its end. */
export function responseOf(
  events: readonly Fields[],
  { output = [], end = {} }: { output?: readonly Fields[]; end?: Fields } = {},
): Fields[] {
  const whole: Fields = {
    ...record,
    status: "completed",
    output,
    usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
    ...end,
  };
  const all = [
    { type: "response.created", response: record },
    ...events,
    { type: `response.${String(whole.status)}`, response: whole },
  ];
  return all.map((event, sequence_number) => ({ ...event, sequence_number }));
}

/** A chunk of a Gemini stream. */
export const candidate = (parts: readonly Fields[], more: Fields = {}): Fields => ({
  responseId: "g1",
  modelVersion: "m",
  candidates: [{ index: 0, content: { role: "model", parts }, ...more }],
  usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
});
