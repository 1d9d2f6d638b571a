import { argumentPieces, callsOf, scriptedUsage } from "./scripted-answer.ts";
import type { AnswerWriter, ScriptedAnswer } from "./scripted-answer.ts";

type Block = Record<string, unknown>;

/** A content block: whole, as in its start event, and the deltas that follow. */
interface Parts {
  whole: Block;
  opening: Block;
  deltas: Block[];
}

function blocksOf(answer: ScriptedAnswer): Parts[] {
  const { reasoning, text } = answer;
  const blocks: Parts[] = [];
  if (reasoning) {
    const { text: thinking, signature } = reasoning;
    blocks.push({
      whole: { type: "thinking", thinking, signature },
      opening: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        { type: "thinking_delta", thinking },
        { type: "signature_delta", signature },
      ],
    });
  }
  if (text) {
    blocks.push({
      whole: { type: "text", text: text.join("") },
      opening: { type: "text", text: "" },
      deltas: text.map((piece) => ({ type: "text_delta", text: piece })),
    });
  }
  for (const call of callsOf(answer) ?? []) {
    const use = { type: "tool_use", id: call.id, name: call.name };
    blocks.push({
      whole: { ...use, input: call.arguments },
      opening: { ...use, input: {} },
      deltas: ["", ...argumentPieces(call)].map((piece) => ({
        type: "input_json_delta",
        partial_json: piece,
      })),
    });
  }
  return blocks;
}

const message = {
  id: "msg_scripted",
  type: "message",
  role: "assistant",
  model: "scripted-model",
};

function usageOf(
  { usage: { input, cached = 0, output } = scriptedUsage }: ScriptedAnswer,
  outputTokens = output,
): Record<string, number> {
  return {
    input_tokens: input - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: outputTokens,
  };
}

const stopOf = (answer: ScriptedAnswer): Block => ({
  stop_reason:
    answer.finish === "length" ? "max_tokens" : callsOf(answer) ? "tool_use" : "end_turn",
  stop_sequence: null,
});

/** Writes answers in the form of Anthropic's Messages. */
export const anthropicMessagesAnswer: AnswerWriter = {
  whole: (answer) => ({
    ...message,
    content: blocksOf(answer).map(({ whole }) => whole),
    ...stopOf(answer),
    usage: usageOf(answer),
  }),
  events: (answer) => [
    {
      type: "message_start",
      message: {
        ...message,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: usageOf(answer, 1),
      },
    },
    { type: "ping" },
    ...blocksOf(answer).flatMap(({ opening, deltas }, index) => [
      { type: "content_block_start", index, content_block: opening },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: stopOf(answer), usage: usageOf(answer) },
    { type: "message_stop" },
  ],
};
