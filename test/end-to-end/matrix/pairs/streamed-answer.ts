import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { type BodyStep, sse } from "../../../support/upstream/steps.ts";
import { fieldsOf, listOf, textOf, type Fields } from "../support/json-value.ts";

/** A text in two pieces, as streams send it. */
const pieces = (text: string): string[] => {
  const middle = text.length >> 1;
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== "");
};

function chatEvents({ choices, usage, ...head }: Fields): BodyStep[] {
  const { message, finish_reason: finish, ...rest } = fieldsOf(listOf(choices)[0]);
  const {
    content,
    reasoning_content: thought,
    reasoning_details: details,
    refusal,
    tool_calls: calls,
    images,
    audio,
  } = fieldsOf(message);
  const chunk = (delta: Fields, more: Fields = {}): BodyStep =>
    sse({
      ...head,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: null, ...more }],
    });
  return [
    chunk({ role: "assistant", content: "" }),
    ...pieces(textOf(thought)).map((piece) => chunk({ reasoning_content: piece })),
    ...listOf(details).map((detail) => chunk({ reasoning_details: [detail] })),
    ...pieces(textOf(content)).map((piece) => chunk({ content: piece })),
    ...pieces(textOf(refusal)).map((piece) => chunk({ refusal: piece })),
    ...(images === undefined ? [] : [chunk({ images })]),
    ...(audio === undefined ? [] : [chunk({ audio })]),
    ...listOf(calls).flatMap(({ function: made, ...call }, index) => [
      chunk({
        tool_calls: [{ index, ...call, function: { name: fieldsOf(made).name, arguments: "" } }],
      }),
      ...pieces(textOf(fieldsOf(made).arguments)).map((piece) =>
        chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
      ),
    ]),
    chunk({}, { ...rest, finish_reason: finish }),
    sse({ ...head, object: "chat.completion.chunk", choices: [], usage }),
    sse("[DONE]"),
  ];
}

const named = (type: string, fields: Fields): BodyStep => sse({ type, ...fields }, { event: type });

function messagesEvents({
  content,
  usage,
  stop_reason,
  stop_sequence,
  stop_details,
  ...head
}: Fields): BodyStep[] {
  const counts = fieldsOf(usage);
  return [
    named("message_start", {
      message: {
        ...head,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...counts, output_tokens: 1 },
      },
    }),
    named("ping", {}),
    ...listOf(content).flatMap((block, index) => blockEvents(block, index)),
    named("message_delta", { delta: { stop_reason, stop_sequence, stop_details }, usage: counts }),
    named("message_stop", {}),
  ];
}

function blockEvents(block: Fields, index: number): BodyStep[] {
  const delta = (fields: Fields): BodyStep =>
    named("content_block_delta", { index, delta: fields });
  const around = (opening: Fields, deltas: readonly Fields[]): BodyStep[] => [
    named("content_block_start", { index, content_block: opening }),
    ...deltas.map(delta),
    named("content_block_stop", { index }),
  ];
  const { text, thinking, signature, input } = block;
  switch (block.type) {
    case "text": {
      const { citations, ...open } = block;
      return around({ ...open, text: "" }, [
        ...pieces(textOf(text)).map((piece) => ({ type: "text_delta", text: piece })),
        ...listOf(citations).map((citation) => ({ type: "citations_delta", citation })),
      ]);
    }
    case "thinking":
      return around({ ...block, thinking: "", signature: "" }, [
        ...pieces(textOf(thinking)).map((piece) => ({ type: "thinking_delta", thinking: piece })),
        { type: "signature_delta", signature },
      ]);
    case "tool_use":
      return around(
        { ...block, input: {} },
        ["", ...pieces(JSON.stringify(input))].map((piece) => ({
          type: "input_json_delta",
          partial_json: piece,
        })),
      );
    default:
      return around(block, []);
  }
}

function responsesEvents(whole: Fields): BodyStep[] {
  const running = {
    ...whole,
    status: "in_progress",
    output: [],
    usage: null,
    incomplete_details: null,
  };
  const events: [string, Fields][] = [
    ["response.created", { response: running }],
    ["response.in_progress", { response: running }],
    ...listOf(whole.output).flatMap((item, output_index): [string, Fields][] => [
      ["response.output_item.added", { output_index, item: { ...item, ...openItem(item) } }],
      ...partEvents(item, { item_id: item.id, output_index }),
      ["response.output_item.done", { output_index, item }],
    ]),
    [`response.${textOf(whole.status)}`, { response: whole }],
  ];
  return events.map(([type, fields], sequence_number) =>
    named(type, { ...fields, sequence_number }),
  );
}

function openItem({ type }: Fields): Fields {
  if (type === "reasoning") return { summary: [], encrypted_content: "" };
  return type === "message"
    ? { status: "in_progress", content: [] }
    : { status: "in_progress", arguments: "" };
}

function partEvents(item: Fields, at: Fields): [string, Fields][] {
  if (item.type === "reasoning") {
    return listOf(item.summary).flatMap((part, summary_index): [string, Fields][] => {
      const place = { ...at, summary_index };
      return [
        ["response.reasoning_summary_part.added", { ...place, part: { ...part, text: "" } }],
        ...pieces(textOf(part.text)).map((delta): [string, Fields] => [
          "response.reasoning_summary_text.delta",
          { ...place, delta },
        ]),
        ["response.reasoning_summary_text.done", { ...place, text: part.text }],
        ["response.reasoning_summary_part.done", { ...place, part }],
      ];
    });
  }
  if (item.type === "function_call") {
    return [
      ...pieces(textOf(item.arguments)).map((delta): [string, Fields] => [
        "response.function_call_arguments.delta",
        { ...at, delta },
      ]),
      ["response.function_call_arguments.done", { ...at, arguments: item.arguments }],
    ];
  }
  return listOf(item.content).flatMap((part, content_index): [string, Fields][] => {
    const [kind, key] = part.type === "refusal" ? ["refusal", "refusal"] : ["output_text", "text"];
    return [
      ["response.content_part.added", { ...at, content_index, part: { ...part, [key]: "" } }],
      ...pieces(textOf(part[key])).map((delta): [string, Fields] => [
        `response.${kind}.delta`,
        { ...at, content_index, delta },
      ]),
      [`response.${kind}.done`, { ...at, content_index, [key]: part[key] }],
      ["response.content_part.done", { ...at, content_index, part }],
    ];
  });
}

/** Gemini sends a part in a chunk, texts in two, and the reason on the last. */
function geminiEvents({ candidates, ...head }: Fields): BodyStep[] {
  const { content, finishReason, ...candidate } = fieldsOf(listOf(candidates)[0]);
  const isWhole = (part: Fields): boolean =>
    part.text === undefined || part.thoughtSignature !== undefined;
  const parts = listOf(fieldsOf(content).parts).flatMap((part) =>
    isWhole(part) ? [part] : pieces(textOf(part.text)).map((text) => ({ ...part, text })),
  );
  const chunk = (part: Fields, more: Fields = {}): BodyStep =>
    sse({
      ...head,
      candidates: [{ ...candidate, content: { role: "model", parts: [part] }, ...more }],
    });
  return [...parts.map((part) => chunk(part)), chunk({ text: "" }, { finishReason })];
}

const writers: Readonly<Record<DialectId, (whole: Fields) => BodyStep[]>> = {
  "openai-chat": chatEvents,
  "anthropic-messages": messagesEvents,
  "openai-responses": responsesEvents,
  "google-generate": geminiEvents,
};

/** The events of a stream that says the same as a whole body of this dialect. */
export const eventsOfWhole = (dialect: DialectId, whole: Fields): BodyStep[] =>
  writers[dialect](whole);
