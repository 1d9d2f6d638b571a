import { argumentPieces, scriptedUsage } from "./scripted-answer.ts";
import type {
  AnswerWriter,
  ScriptedAnswer,
  ScriptedCall,
  ScriptedReasoning,
  ScriptedTextCall,
} from "./scripted-answer.ts";

type Item = Record<string, unknown>;
type Event = Record<string, unknown>;

/** An output item: whole, and the events between its start and its end. */
interface Output {
  whole: Item;
  opening: Item;
  events: (at: { item_id: unknown; output_index: number }) => Event[];
}

function reasoningOutput({ text, signature }: ScriptedReasoning): Output {
  const part = { type: "summary_text", text };
  const item = { type: "reasoning", id: "rs_scripted" };
  return {
    whole: { ...item, summary: [part], encrypted_content: signature },
    opening: { ...item, summary: [] },
    events: (at) => {
      const where = { ...at, summary_index: 0 };
      const begin = { type: "response.reasoning_summary_part.added", part: { ...part, text: "" } };
      return [
        { ...where, ...begin },
        { ...where, type: "response.reasoning_summary_text.delta", delta: text },
        { ...where, type: "response.reasoning_summary_text.done", text },
        { ...where, type: "response.reasoning_summary_part.done", part },
      ];
    },
  };
}

function messageOutput(pieces: readonly string[]): Output {
  const text = pieces.join("");
  const part = { type: "output_text", text, annotations: [], logprobs: [] };
  const item = { type: "message", id: "msg_scripted", role: "assistant" };
  return {
    whole: { ...item, status: "completed", content: [part] },
    opening: { ...item, status: "in_progress", content: [] },
    events: (at) => {
      const where = { ...at, content_index: 0 };
      return [
        { ...where, type: "response.content_part.added", part: { ...part, text: "" } },
        ...pieces.map((delta) => ({
          ...where,
          type: "response.output_text.delta",
          delta,
          logprobs: [],
        })),
        { ...where, type: "response.output_text.done", text, logprobs: [] },
        { ...where, type: "response.content_part.done", part },
      ];
    },
  };
}

function callOutput(call: ScriptedCall, index: number): Output {
  const item = {
    type: "function_call",
    id: `fc_scripted_${index}`,
    call_id: call.id,
    name: call.name,
  };
  const text = JSON.stringify(call.arguments);
  return {
    whole: { ...item, status: "completed", arguments: text },
    opening: { ...item, status: "in_progress", arguments: "" },
    events: (at) => [
      ...argumentPieces(call).map((delta) => ({
        ...at,
        type: "response.function_call_arguments.delta",
        delta,
      })),
      { ...at, type: "response.function_call_arguments.done", name: call.name, arguments: text },
    ],
  };
}

function textCallOutput({ id, name, input }: ScriptedTextCall, index: number): Output {
  const item = { type: "custom_tool_call", id: `ctc_scripted_${index}`, call_id: id, name };
  return {
    whole: { ...item, status: "completed", input },
    opening: { ...item, status: "in_progress", input: "" },
    events: (at) => [
      { ...at, type: "response.custom_tool_call_input.delta", delta: input },
      { ...at, type: "response.custom_tool_call_input.done", input },
    ],
  };
}

const outputsOf = ({ reasoning, text, calls = [], textCalls = [] }: ScriptedAnswer): Output[] => [
  ...(reasoning ? [reasoningOutput(reasoning)] : []),
  ...(text ? [messageOutput(text)] : []),
  ...calls.map(callOutput),
  ...textCalls.map(textCallOutput),
];

const head = {
  id: "resp_scripted",
  object: "response",
  created_at: 1_700_000_000,
  model: "scripted-model",
  error: null,
  incomplete_details: null,
};

const usageOf = ({
  usage: { input, cached = 0, output } = scriptedUsage,
}: ScriptedAnswer): Item => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + output,
});

const wholeOf = (answer: ScriptedAnswer): Item => ({
  ...head,
  ...(answer.finish === "length"
    ? { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
    : { status: "completed" }),
  output: outputsOf(answer).map(({ whole }) => whole),
  usage: usageOf(answer),
});

function eventsOf(answer: ScriptedAnswer): Event[] {
  const running = { ...head, status: "in_progress", output: [], usage: null };
  const events: Event[] = [
    { type: "response.created", response: running },
    { type: "response.in_progress", response: running },
    ...outputsOf(answer).flatMap(({ whole, opening, events: inner }, index) => [
      { type: "response.output_item.added", output_index: index, item: opening },
      ...inner({ item_id: opening["id"], output_index: index }),
      { type: "response.output_item.done", output_index: index, item: whole },
    ]),
    {
      type: answer.finish === "length" ? "response.incomplete" : "response.completed",
      response: wholeOf(answer),
    },
  ];
  return events.map((event, index) => ({ ...event, sequence_number: index }));
}

/** Writes answers in the form of OpenAI's Responses. */
export const openaiResponsesAnswer: AnswerWriter = { whole: wholeOf, events: eventsOf };
