import { defineEndpoint } from "../../access/define-endpoint.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/index.ts";
import { chatRequestSchema } from "../../inference/dialects/openai-chat/request-schema.ts";
import { modelIdOf } from "../../inference/surfaces/ollama/chat-request.ts";
import { editMembers } from "../../platform/kernel/json/json-members.ts";
import { outputCapHeader } from "../inference/answer-call.ts";
import { chatReader, type ChatServices } from "../inference/chat-completions.ts";
import { withEarlyStream } from "../inference/streams/early-stream.ts";
import { inferenceBodyBytesMax, withCall, type CallReader } from "../inference/read-call.ts";
import { inferenceHeaders } from "../inference/request-headers.ts";
import { chatChunkSchema, chatCompletionSchema } from "../inference/streams/stream-events.ts";
import { answerChat } from "../inference/tools/serve-dialogue.ts";
import { encodeOllamaError, ollamaDoor, runningResponse } from "./door.ts";

/** Reads chat whose model has the tag that Ollama's lists add. */
const taggedReader: CallReader = {
  ...chatReader,
  prepare({ text, body }) {
    const model = modelIdOf(body["model"]);
    if (model === body["model"] || model === "") return { text, body };
    return {
      text: editMembers(text, new Map([["model", JSON.stringify(model)]])),
      body: { ...body, model },
    };
  },
};

/** Serves OpenAI's chat dialect where clients of Ollama look for it, such as GitHub Copilot. */
export const ollamaOpenAiChat = defineEndpoint<ChatServices>({
  ...ollamaDoor,
  method: "POST",
  path: "/ollama/v1/chat/completions",
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a chat completion at Ollama's path of OpenAI's dialect.",
  description:
    "For clients that find models in Ollama's form and chat in OpenAI's, such as GitHub Copilot. A name means the same with and without " +
    "`:latest`.",
  rawBody: chatRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  answerHeaders: outputCapHeader,
  streamEvents: chatChunkSchema,
  headers: inferenceHeaders,
  response: chatCompletionSchema,
  encodeError: openaiChat.encodeError,
  async handle(context, dependencies) {
    return withCall(context, { reader: taggedReader, services: dependencies }, (call) =>
      withEarlyStream(
        context,
        { call, dialect: openaiChat, inference: dependencies.inference },
        () => answerChat(context, call, dependencies),
      ),
    );
  },
});

/** Says that there is a server, as clients of Ollama ask before anything else. */
export const ollamaRunning = defineEndpoint<unknown>({
  ...ollamaDoor,
  access: { open: true },
  method: "GET",
  path: "/ollama",
  counting: "none",
  summary: "Say that the server is running, as Ollama does.",
  otherResponseTypes: ["text/plain"],
  encodeError: encodeOllamaError,
  handle: runningResponse,
});
