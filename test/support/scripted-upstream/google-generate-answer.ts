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
const answerOf = (parts: Part[], more: Record<string, unknown> = {}): Record<string, unknown> => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
  usageMetadata: {
    promptTokenCount: scriptedUsage.input,
    candidatesTokenCount: scriptedUsage.output,
    totalTokenCount: scriptedUsage.input + scriptedUsage.output,
  },
  modelVersion: "scripted-model",
  responseId: "scripted",
});

/** Returns the finish reason; answers with calls finish with STOP as well. */
const finishOf = ({ finish }: ScriptedAnswer): Record<string, unknown> => ({
  finishReason: finish === "length" ? "MAX_TOKENS" : "STOP",
});

/**
 * Writes answers in the form of Gemini's generateContent; each part is a chunk, parallel calls
 * included.
 */
export const googleGenerateAnswer: AnswerWriter = {
  whole: (answer) => answerOf(partsOf(answer), finishOf(answer)),
  events: (answer) =>
    partsOf(answer).map((part, index, parts) =>
      answerOf([part], index === parts.length - 1 ? finishOf(answer) : {}),
    ),
};
