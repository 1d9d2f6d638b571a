import { defineEndpoint } from "../../access/define-endpoint.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/index.ts";
import {
  chatRequestSchema,
  checkChatRequest,
  withToolTypes,
} from "../../inference/dialects/openai-chat/request-schema.ts";
import { reshapeChat } from "../../inference/surfaces/responses-shaped-chat.ts";
import type { Dependencies } from "../dependencies.ts";
import { outputCapHeader } from "./answer-call.ts";
import { answerChat } from "./tools/serve-dialogue.ts";
import { withEarlyStream } from "./streams/early-stream.ts";
import {
  inferenceBodyBytesMax,
  withCall,
  type CallReader,
  type CallServices,
} from "./read-call.ts";
import { inferenceHeaders } from "./request-headers.ts";
import { chatChunkSchema, chatCompletionSchema } from "./streams/stream-events.ts";

/** The reader of requests in the chat dialect. */
export const chatReader: CallReader = {
  dialect: openaiChat,
  idPrefix: "chatcmpl-",
  validate: checkChatRequest,
  // A body of chat has no `input`.
  reshape: (body) => (body["input"] === undefined ? reshapeTools(body) : reshapeChat(body)),
  dialectHeaders: [],
};

function reshapeTools(body: Readonly<Record<string, unknown>>) {
  const typed = withToolTypes(body);
  return typed && { body: typed, losses: [] };
}

/** What answering a chat needs: what every call does, and the tools that run here. */
export type ChatServices = CallServices &
  Pick<
    Dependencies,
    | "documents"
    | "upstreamServers"
    | "toolCalls"
    | "maxToolRounds"
    | "search"
    | "hiddenTurns"
    | "publicUrl"
  >;

/** Serves OpenAI's chat dialect, whole or streamed, on any model of the catalog. */
export const chatCompletions = defineEndpoint<ChatServices>({
  method: "POST",
  path: "/chat/completions",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a chat completion, whole or streamed.",
  description:
    "OpenAI's chat dialect, with routing preferences in `provider`, fallback models in `models`, and the charge in `usage.cost`.",
  tag: "Inference",
  rawBody: chatRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  answerHeaders: outputCapHeader,
  streamEvents: chatChunkSchema,
  headers: inferenceHeaders,
  response: chatCompletionSchema,
  encodeError: openaiChat.encodeError,
  handle(context, dependencies) {
    return withCall(context, { reader: chatReader, services: dependencies }, (call) =>
      withEarlyStream(
        context,
        { call, dialect: openaiChat, inference: dependencies.inference },
        () => answerChat(context, call, dependencies),
      ),
    );
  },
});
