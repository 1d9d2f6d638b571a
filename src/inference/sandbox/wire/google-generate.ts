import {
  failureMessage,
  InvalidRequest,
  type Refusal,
  type RequestTarget,
  type SandboxDialect,
  sseEvent,
  type UnderstoodRequest,
} from "../dialect.ts";
import { generateChunks, generateWhole } from "./google-generate-reply.ts";
import { parseGenerateBody, readGeneratePrompt } from "./google-generate-request.ts";

const statusNames: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

const googleError = ({ status, message }: Refusal): Record<string, unknown> => ({
  error: {
    code: status,
    message,
    status: statusNames[status] ?? (status < 500 ? "INVALID_ARGUMENT" : "INTERNAL"),
  },
});

/** Google's `models/{model}:generateContent` and `:streamGenerateContent`. */
export const googleGenerate: SandboxDialect = {
  read(body: unknown, target: RequestTarget): UnderstoodRequest {
    const asked = verbOf(target);
    const request = parseGenerateBody(body);
    const showThoughts = request.generationConfig?.thinkingConfig?.includeThoughts ?? false;
    return {
      prompt: readGeneratePrompt(request, target.pathModel),
      stream: asked.streamed && asked.sse,
      // Without alt=sse, Google streams one JSON array of chunks; it is sent as a whole here.
      whole: (reply) =>
        asked.streamed
          ? [...generateChunks(reply, showThoughts)].map((chunk) => chunk.body)
          : generateWhole(reply, showThoughts),
      events: (reply) =>
        generateChunks(reply, showThoughts).map((chunk) => ({
          wire: sseEvent(chunk.body),
          content: chunk.content,
        })),
      failure: (reply) =>
        sseEvent(googleError({ status: 500, message: failureMessage, requestId: reply.seed })),
    };
  },
  refusal: googleError,
};

function verbOf({ pathAction, query }: RequestTarget): { streamed: boolean; sse: boolean } {
  if (pathAction !== "generateContent" && pathAction !== "streamGenerateContent") {
    throw new InvalidRequest(`The sandbox has no method '${pathAction}'.`);
  }
  return { streamed: pathAction === "streamGenerateContent", sse: query.get("alt") === "sse" };
}
