import {
  failureMessage,
  type SandboxDialect,
  sseEvent,
  type UnderstoodRequest,
} from "../dialect.ts";
import { openaiError } from "./openai-error.ts";
import { chatEvents, chatWhole } from "./openai-chat-reply.ts";
import { parseChatBody, readChatPrompt } from "./openai-chat-request.ts";

/** OpenAI's `POST /v1/chat/completions`. */
export const openaiChat: SandboxDialect = {
  read(body: unknown): UnderstoodRequest {
    const request = parseChatBody(body);
    const options = {
      topLogprobs: request.logprobs ? (request.top_logprobs ?? 0) : undefined,
      includeUsage: request.stream_options?.include_usage ?? false,
    };
    return {
      prompt: readChatPrompt(request),
      stream: request.stream ?? false,
      whole: (reply) => chatWhole(reply, options),
      events: (reply) => chatEvents(reply, options),
      failure: (reply) =>
        sseEvent(openaiError({ status: 500, message: failureMessage, requestId: reply.seed })),
    };
  },
  refusal: openaiError,
};
