import { chatChunks, chatCompletion, type ChatAnswer } from "../upstream/openai-chat-fixtures.ts";
import {
  argumentPieces,
  callsOf,
  type AnswerWriter,
  type ScriptedAnswer,
  type ScriptedUsage,
} from "./scripted-answer.ts";

function fixtureOf(answer: ScriptedAnswer): ChatAnswer {
  const { reasoning, text, finish } = answer;
  const calls = callsOf(answer);
  return {
    text: text ?? null,
    ...(reasoning ? { reasoning: reasoning.text } : {}),
    ...(calls
      ? { toolCalls: calls.map((call) => ({ ...call, arguments: argumentPieces(call) })) }
      : {}),
    extra: { system_fingerprint: "fp_scripted" },
    finishReason: finish ?? (calls ? "tool_calls" : "stop"),
    ...(answer.usage && { usage: chatUsage(answer.usage) }),
  };
}

const chatUsage = ({ input, cached = 0, output }: ScriptedUsage): Record<string, unknown> => ({
  prompt_tokens: input,
  prompt_tokens_details: { cached_tokens: cached },
  completion_tokens: output,
  total_tokens: input + output,
});

/** Writes answers in the form of OpenAI's chat completions; `[DONE]` follows the events. */
export const openaiChatAnswer: AnswerWriter = {
  whole: (answer) => chatCompletion(fixtureOf(answer)),
  events: (answer) => [...chatChunks(fixtureOf(answer)), "[DONE]"],
};
