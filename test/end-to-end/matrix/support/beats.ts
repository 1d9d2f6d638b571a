import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { type BodyStep, sse } from "../../../support/upstream/steps.ts";

/**
 * Events of an upstream after which its client can know something new, and the word by which it
 * shows.
 */
interface Beat {
  word: string;
  events: readonly BodyStep[];
}

/**
 * What an upstream says beat by beat: two words, a thought where it may come late, a call with its
 * arguments, the end.
 */
export interface Tale {
  opening: readonly BodyStep[];
  beats: readonly Beat[];
  ending: readonly BodyStep[];
}

const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

const chunk = (delta: object, finish: string | null = null): BodyStep =>
  sse({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
  });

const chat: Tale = {
  opening: [chunk({ role: "assistant", content: "" })],
  beats: [
    { word: "pondering", events: [chunk({ reasoning_content: "pondering" })] },
    { word: "further", events: [chunk({ reasoning_content: " further" })] },
    { word: "first", events: [chunk({ content: "first" })] },
    { word: "second", events: [chunk({ content: " second" })] },
    {
      word: "get_weather",
      events: [
        chunk({
          tool_calls: [
            {
              index: 0,
              id: "call_1",
              type: "function",
              function: { name: "get_weather", arguments: "" },
            },
          ],
        }),
      ],
    },
    {
      word: "Paris",
      events: [chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city":"Paris' } }] })],
    },
    {
      word: "Texas",
      events: [chunk({ tool_calls: [{ index: 0, function: { arguments: ', Texas"}' } }] })],
    },
  ],
  ending: [
    chunk({}, "tool_calls"),
    sse({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage }),
    sse("[DONE]"),
  ],
};

const event = (type: string, fields: object): BodyStep => sse({ type, ...fields }, { event: type });
const delta = (index: number, fields: object): BodyStep =>
  event("content_block_delta", { index, delta: fields });
const startBlock = (index: number, block: object): BodyStep =>
  event("content_block_start", { index, content_block: block });
const stopBlock = (index: number): BodyStep => event("content_block_stop", { index });

const messages: Tale = {
  opening: [
    event("message_start", {
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 11, output_tokens: 1 },
      },
    }),
    startBlock(0, { type: "thinking", thinking: "", signature: "" }),
  ],
  beats: [
    { word: "pondering", events: [delta(0, { type: "thinking_delta", thinking: "pondering" })] },
    { word: "further", events: [delta(0, { type: "thinking_delta", thinking: " further" })] },
    {
      word: "first",
      events: [
        delta(0, { type: "signature_delta", signature: "c2ln" }),
        stopBlock(0),
        startBlock(1, { type: "text", text: "" }),
        delta(1, { type: "text_delta", text: "first" }),
      ],
    },
    { word: "second", events: [delta(1, { type: "text_delta", text: " second" })] },
    {
      word: "get_weather",
      events: [
        stopBlock(1),
        startBlock(2, { type: "tool_use", id: "toolu_1", name: "get_weather", input: {} }),
      ],
    },
    {
      word: "Paris",
      events: [delta(2, { type: "input_json_delta", partial_json: '{"city":"Paris' })],
    },
    { word: "Texas", events: [delta(2, { type: "input_json_delta", partial_json: ', Texas"}' })] },
  ],
  ending: [
    stopBlock(2),
    event("message_delta", {
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { output_tokens: 7 },
    }),
    event("message_stop", {}),
  ],
};

const record = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "in_progress",
  output: [],
  usage: null,
};
const thought = {
  type: "reasoning",
  id: "rs_1",
  summary: [{ type: "summary_text", text: "pondering further" }],
};
const text = { type: "output_text", text: "first second", annotations: [], logprobs: [] };
const message = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [text],
};
const call = {
  type: "function_call",
  id: "fc_1",
  call_id: "call_1",
  name: "get_weather",
  arguments: '{"city":"Paris, Texas"}',
  status: "completed",
};
const inThought = { item_id: "rs_1", output_index: 0, summary_index: 0 };
const inMessage = { item_id: "msg_1", output_index: 1, content_index: 0 };
const inCall = { item_id: "fc_1", output_index: 2 };
const thinks = (words: string) =>
  event("response.reasoning_summary_text.delta", { ...inThought, delta: words });
const says = (words: string) =>
  event("response.output_text.delta", { ...inMessage, delta: words, logprobs: [] });
const argues = (words: string) =>
  event("response.function_call_arguments.delta", { ...inCall, delta: words });

const responses: Tale = {
  opening: [
    event("response.created", { response: record }),
    event("response.in_progress", { response: record }),
    event("response.output_item.added", { output_index: 0, item: { ...thought, summary: [] } }),
    event("response.reasoning_summary_part.added", {
      ...inThought,
      part: { type: "summary_text", text: "" },
    }),
  ],
  beats: [
    { word: "pondering", events: [thinks("pondering")] },
    { word: "further", events: [thinks(" further")] },
    {
      word: "first",
      events: [
        event("response.reasoning_summary_text.done", { ...inThought, text: "pondering further" }),
        event("response.reasoning_summary_part.done", { ...inThought, part: thought.summary[0] }),
        event("response.output_item.done", { output_index: 0, item: thought }),
        event("response.output_item.added", {
          output_index: 1,
          item: { ...message, status: "in_progress", content: [] },
        }),
        event("response.content_part.added", { ...inMessage, part: { ...text, text: "" } }),
        says("first"),
      ],
    },
    { word: "second", events: [says(" second")] },
    {
      word: "get_weather",
      events: [
        event("response.output_text.done", { ...inMessage, text: text.text, logprobs: [] }),
        event("response.content_part.done", { ...inMessage, part: text }),
        event("response.output_item.done", { output_index: 1, item: message }),
        event("response.output_item.added", {
          output_index: 2,
          item: { ...call, status: "in_progress", arguments: "" },
        }),
      ],
    },
    { word: "Paris", events: [argues('{"city":"Paris')] },
    { word: "Texas", events: [argues(', Texas"}')] },
  ],
  ending: [
    event("response.function_call_arguments.done", { ...inCall, arguments: call.arguments }),
    event("response.output_item.done", { output_index: 2, item: call }),
    event("response.completed", {
      response: {
        ...record,
        status: "completed",
        output: [thought, message, call],
        usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
      },
    }),
  ],
};

const gemini = (part: object, more: object = {}): BodyStep =>
  sse({
    candidates: [{ index: 0, content: { role: "model", parts: [part] }, ...more }],
    responseId: "g",
    modelVersion: "m",
    usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
  });

const google: Tale = {
  opening: [],
  beats: [
    { word: "pondering", events: [gemini({ text: "pondering", thought: true })] },
    { word: "further", events: [gemini({ text: " further", thought: true })] },
    { word: "first", events: [gemini({ text: "first" })] },
    { word: "second", events: [gemini({ text: " second" })] },
    {
      word: "Texas",
      events: [gemini({ functionCall: { name: "get_weather", args: { city: "Paris, Texas" } } })],
    },
  ],
  ending: [gemini({ text: "" }, { finishReason: "STOP" })],
};

/** The same tale in every dialect of upstreams; Gemini makes a call in one event. */
export const tales: Readonly<Record<DialectId, Tale>> = {
  "openai-chat": chat,
  "anthropic-messages": messages,
  "openai-responses": responses,
  "google-generate": google,
};

/** All events of a tale. */
export const eventsOf = ({ opening, beats, ending }: Tale): BodyStep[] => [
  ...opening,
  ...beats.flatMap(({ events }) => events),
  ...ending,
];
