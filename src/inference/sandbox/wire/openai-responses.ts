import {
  failureMessage,
  type SandboxDialect,
  sseEvent,
  type UnderstoodRequest,
} from "../dialect.ts";
import { openaiError } from "./openai-error.ts";
import { responseBody, responseEvents, responseWhole } from "./openai-responses-reply.ts";
import { parseResponsesBody, readResponsesPrompt } from "./openai-responses-request.ts";

const failure = { code: "server_error", message: failureMessage };

/** OpenAI's `POST /v1/responses`, without stored state. */
export const openaiResponses: SandboxDialect = {
  read(body: unknown): UnderstoodRequest {
    const request = parseResponsesBody(body);
    return {
      prompt: readResponsesPrompt(request),
      stream: request.stream ?? false,
      whole: (reply) => responseWhole(reply, request),
      events: (reply) => responseEvents(reply, request),
      failure(reply, sentCount) {
        const error = { type: "error", ...failure, param: null, sequence_number: sentCount };
        const response = { ...responseBody(reply, request), status: "failed", error: failure };
        const failed = { type: "response.failed", response, sequence_number: sentCount + 1 };
        return sseEvent(error, error.type) + sseEvent(failed, failed.type);
      },
    };
  },
  refusal: openaiError,
};
