import {
  callsOf,
  scriptedUsage,
  type AnswerWriter,
  type ScriptedAnswer,
} from "./scripted-answer.ts";

type Part = Record<string, unknown>;

function partsOf(answer: ScriptedAnswer): Part[] {
  const { reasoning, text = [] } = answer;
  return [
    ...(reasoning ? [{ text: reasoning.text, thought: true }] : []),
    ...text.map((piece) => ({ text: piece })),
    ...(callsOf(answer) ?? []).map((call, index) => ({
      functionCall: { name: call.name, args: call.arguments },
      ...(reasoning && index === 0 ? { thoughtSignature: reasoning.signature } : {}),
    })),
  ];
}

/** Returns an answer or a chunk of it; Gemini repeats its usage in every chunk. */
function answerOf(
  answer: ScriptedAnswer,
  parts: Part[],
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  const { input, cached = 0, output } = answer.usage ?? scriptedUsage;
  return {
    candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
    usageMetadata: {
      promptTokenCount: input,
      candidatesTokenCount: output,
      totalTokenCount: input + output,
      ...(cached > 0 && { cachedContentTokenCount: cached }),
    },
    modelVersion: "scripted-model",
    // Answers with other calls have another id, as from the vendor.
    responseId: callsOf(answer)?.[0]?.id ?? "scripted",
  };
}

/** Returns the finish reason; answers with calls finish with STOP as well. */
const finishOf = ({ finish }: ScriptedAnswer): Record<string, unknown> => ({
  finishReason: finish === "length" ? "MAX_TOKENS" : "STOP",
});

/**
 * Writes answers in the form of Gemini's generateContent; each part is a chunk, parallel calls
 * included.
 */
export const googleGenerateAnswer: AnswerWriter = {
  whole: (answer) => answerOf(answer, partsOf(answer), finishOf(answer)),
  events: (answer) =>
    partsOf(answer).map((part, index, parts) =>
      answerOf(answer, [part], index === parts.length - 1 ? finishOf(answer) : {}),
    ),
};
