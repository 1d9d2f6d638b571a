import { converseEvent } from "../upstream/amazon-converse-wire.ts";
import type { BodyStep } from "../upstream/steps.ts";
import { argumentPieces, callsOf, scriptedUsage, type ScriptedAnswer } from "./scripted-answer.ts";

type Block = Record<string, unknown>;

/** A content block: whole, its start where it has one, and its deltas. */
interface Parts {
  whole: Block;
  start?: Block;
  deltas: Block[];
}

function blocksOf(answer: ScriptedAnswer): Parts[] {
  const { reasoning, text } = answer;
  return [
    ...(reasoning
      ? [
          {
            whole: { reasoningContent: { reasoningText: reasoning } },
            deltas: [
              { reasoningContent: { text: reasoning.text } },
              { reasoningContent: { signature: reasoning.signature } },
            ],
          },
        ]
      : []),
    ...(text
      ? [{ whole: { text: text.join("") }, deltas: text.map((piece) => ({ text: piece })) }]
      : []),
    ...(callsOf(answer) ?? []).map((call) => {
      const use = { toolUseId: call.id, name: call.name };
      return {
        whole: { toolUse: { ...use, input: call.arguments } },
        start: { toolUse: use },
        deltas: argumentPieces(call).map((input) => ({ toolUse: { input } })),
      };
    }),
  ];
}

function usageOf({ usage = scriptedUsage }: ScriptedAnswer): Block {
  const { input, cached = 0, output } = usage;
  return {
    inputTokens: input - cached,
    outputTokens: output,
    totalTokens: input + output,
    ...(cached > 0 && { cacheReadInputTokens: cached }),
  };
}

const stopReasonOf = (answer: ScriptedAnswer): string =>
  answer.finish === "length" ? "max_tokens" : callsOf(answer) ? "tool_use" : "end_turn";

/** Writes answers in the form of Amazon's Converse, whose events are framed. */
export const amazonConverseAnswer = {
  whole: (answer: ScriptedAnswer): unknown => ({
    output: {
      message: { role: "assistant", content: blocksOf(answer).map(({ whole }) => whole) },
    },
    stopReason: stopReasonOf(answer),
    usage: usageOf(answer),
    metrics: { latencyMs: 12 },
  }),
  events: (answer: ScriptedAnswer): BodyStep[] => [
    converseEvent("messageStart", { role: "assistant" }),
    ...blocksOf(answer).flatMap(({ start, deltas }, contentBlockIndex) => [
      ...(start ? [converseEvent("contentBlockStart", { contentBlockIndex, start })] : []),
      ...deltas.map((delta) => converseEvent("contentBlockDelta", { contentBlockIndex, delta })),
      converseEvent("contentBlockStop", { contentBlockIndex }),
    ]),
    converseEvent("messageStop", { stopReason: stopReasonOf(answer) }),
    converseEvent("metadata", { usage: usageOf(answer), metrics: { latencyMs: 12 } }),
  ],
};
