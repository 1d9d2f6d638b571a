import {
  failureMessage,
  type SandboxDialect,
  sseEvent,
  type UnderstoodRequest,
} from "../dialect.ts";
import { anthropicError } from "./anthropic-error.ts";
import { messageEvents, messageWhole } from "./anthropic-messages-reply.ts";
import { parseMessagesBody, readMessagesPrompt } from "./anthropic-messages-request.ts";

/** Anthropic's `POST /v1/messages`. */
export const anthropicMessages: SandboxDialect = {
  read(body: unknown): UnderstoodRequest {
    const request = parseMessagesBody(body);
    const options = { omitThinking: request.thinking?.display === "omitted" };
    return {
      prompt: readMessagesPrompt(request),
      stream: request.stream ?? false,
      whole: (reply) => messageWhole(reply, options),
      events: (reply) => messageEvents(reply, options),
      failure: (reply) =>
        sseEvent(
          anthropicError({ status: 500, message: failureMessage, requestId: reply.seed }),
          "error",
        ),
    };
  },
  refusal: anthropicError,
};
