import { chatError, fixtureText, plainUsage } from "./openai-chat-fixtures.ts";
import { type BodyStep, sse } from "./steps.ts";
import type { UpstreamWire } from "./upstream-wire.ts";

const head = {
  id: "resp_fixture",
  object: "response",
  created_at: 1_700_000_000,
  model: "fixture-model",
  error: null,
};
const running = { ...head, status: "in_progress", output: [], usage: null };
const item = { id: "msg_fixture", type: "message", role: "assistant" };
const part = { type: "output_text", text: fixtureText, annotations: [], logprobs: [] };
const wholeItem = { ...item, status: "completed", content: [part] };
const at = { item_id: item.id, output_index: 0, content_index: 0 };

const whole = {
  ...head,
  status: "completed",
  output: [wholeItem],
  usage: {
    input_tokens: plainUsage.prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: plainUsage.completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: plainUsage.total_tokens,
  },
};

const opening: [string, Record<string, unknown>][] = [
  ["response.created", { response: running }],
  ["response.in_progress", { response: running }],
  [
    "response.output_item.added",
    { output_index: 0, item: { ...item, status: "in_progress", content: [] } },
  ],
  ["response.content_part.added", { ...at, part: { ...part, text: "" } }],
];
const content = ["Hel", "lo ", "wörld 😀"].map((delta): [string, Record<string, unknown>] => [
  "response.output_text.delta",
  { ...at, delta, logprobs: [] },
]);
const finish: [string, Record<string, unknown>][] = [
  ["response.output_text.done", { ...at, text: fixtureText, logprobs: [] }],
  ["response.content_part.done", { ...at, part }],
  ["response.output_item.done", { output_index: 0, item: wholeItem }],
  ["response.completed", { response: whole }],
];

const failure = { code: "server_error", message: "The fixture failed." };

const numbered = (events: [string, Record<string, unknown>][], first: number): BodyStep[] =>
  events.map(([type, fields], index) =>
    sse({ type, ...fields, sequence_number: first + index }, { event: type }),
  );

/** The Responses form of the default answer. */
export const openaiResponsesWire: UpstreamWire = {
  dialect: "openai-responses",
  opening: numbered(opening, 0),
  content: numbered(content, opening.length),
  finish: numbered(finish, opening.length + content.length),
  terminator: [],
  failure: numbered(
    [
      ["error", { ...failure, param: null }],
      ["response.failed", { response: { ...running, status: "failed", error: failure } }],
    ],
    0,
  ),
  whole,
  errorBody: (status) => chatError(`The fixture refused with ${status}.`),
};
