import { defineEndpoint } from "../../http/endpoint.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/openai-chat.ts";
import { chatRequestSchema } from "../../inference/dialects/openai-chat/request-schema.ts";
import { validateChatEnvelope } from "../../inference/dialects/openai-chat/validate-envelope.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerCall } from "./answer-call.ts";
import { inferenceBodyBytesMax, readCall, type CallReader } from "./read-call.ts";
import { outputCapHeader } from "./served-headers.ts";
import { inferenceHeaders } from "./request-headers.ts";
import { chatChunkSchema, chatCompletionSchema } from "./stream-events.ts";

/** How requests in the chat dialect are read. */
export const chatReader: CallReader = {
  dialect: "openai-chat",
  idPrefix: "chatcmpl-",
  validate: validateChatEnvelope,
  decode: openaiChat.decodeRequest,
  dialectHeaders: [],
};

/** Chat in OpenAI's dialect, whole or streamed, on any model of the catalog. */
export const chatCompletions = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/chat/completions",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a chat completion, whole or streamed.",
  description:
    "OpenAI's chat dialect with routing preferences in `provider`, fallback models in `models`, and the charge in `usage.cost`.",
  tag: "Inference",
  rawBody: chatRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  answerHeaders: outputCapHeader,
  streamEvents: chatChunkSchema,
  headers: inferenceHeaders,
  response: chatCompletionSchema,
  encodeError: openaiChat.encodeError,
  async handle(context, dependencies) {
    return answerCall(context, await readCall(context, chatReader, dependencies), dependencies);
  },
});
