import { chatChunks, chatCompletion, type StreamedChatAnswer } from "./openai-chat-fixtures.ts";
import type { RecordedRequest } from "./recorded-request.ts";
import { json, type Script, sse, stream } from "./steps.ts";

/** Returns a streamed chat answer that ends well. */
export const chatStream = (answer: StreamedChatAnswer = {}): Script =>
  stream([...chatChunks(answer).map((chunk) => sse(chunk)), sse("[DONE]")]);

/**
 * Answers a chat request as OpenAI does: streamed, and with usage in the stream, where the request
 * asks for it.
 */
export const healthyChat = (request: RecordedRequest): Script => chatAnswer(request, {});

/** Answers like `healthyChat`, with another answer. */
export function chatAnswer(request: RecordedRequest, answer: StreamedChatAnswer): Script {
  const asked = readFlags(request);
  if (!asked.stream) return json(chatCompletion(answer));
  return chatStream({ usageOn: asked.includeUsage ? "after" : "never", ...answer });
}

function readFlags(request: RecordedRequest): { stream: boolean; includeUsage: boolean } {
  const body: unknown = request.bytes.length === 0 ? {} : request.json();
  const options: unknown = Reflect.get(Object(body), "stream_options");
  return {
    stream: Reflect.get(Object(body), "stream") === true,
    includeUsage: Reflect.get(Object(options), "include_usage") === true,
  };
}
