import type { Fields } from "../support/json-value.ts";

/** Usage of 11 tokens in and 7 out in each dialect. */
const chatUsage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const messagesUsage = { input_tokens: 11, output_tokens: 7 };
const responsesUsage = { input_tokens: 11, output_tokens: 7, total_tokens: 18 };
const geminiUsage = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };

/** A whole chat answer of this choice. */
export const chat = (choice: Fields, usage: Fields = chatUsage): Fields => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_763_700_000,
  model: "large-v2",
  choices: [{ index: 0, logprobs: null, ...choice }],
  usage,
});

/** A whole message of these blocks and this end. */
export const message = (
  content: readonly Fields[],
  end: Fields,
  usage: Fields = messagesUsage,
): Fields => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "large-v2",
  content,
  stop_sequence: null,
  ...end,
  usage,
});

/** A whole response of these items. */
export const response = (
  output: readonly Fields[],
  end: Fields = {},
  usage: Fields = responsesUsage,
): Fields => ({
  id: "resp_1",
  object: "response",
  created_at: 1_763_700_000,
  model: "large-v2",
  status: "completed",
  error: null,
  incomplete_details: null,
  output,
  ...end,
  usage,
});

/** An item of a message that says this. */
export const said = (text: string, status = "completed"): Fields => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  status,
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
});

/** A whole answer of Gemini's of these parts. */
export const gemini = (
  parts: readonly Fields[],
  finishReason: string,
  usage: Fields = geminiUsage,
): Fields => ({
  responseId: "g1",
  modelVersion: "large-v2",
  candidates: [{ index: 0, content: { role: "model", parts }, finishReason }],
  usageMetadata: usage,
});
