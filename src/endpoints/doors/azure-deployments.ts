import { defineEndpoint } from "../../access/define-endpoint.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/index.ts";
import { chatRequestSchema } from "../../inference/dialects/openai-chat/request-schema.ts";
import { editMembers } from "../../platform/kernel/json/json-members.ts";
import { outputCapHeader } from "../inference/answer-call.ts";
import { chatReader, type ChatServices } from "../inference/chat-completions.ts";
import { withEarlyStream } from "../inference/streams/early-stream.ts";
import { inferenceBodyBytesMax, withCall, type CallReader } from "../inference/read-call.ts";
import { inferenceHeaders } from "../inference/request-headers.ts";
import { chatChunkSchema, chatCompletionSchema } from "../inference/streams/stream-events.ts";
import { answerChat } from "../inference/tools/serve-dialogue.ts";

/** Returns the reader of a chat request whose path names its model. */
const deploymentReader = (model: string): CallReader => ({
  ...chatReader,
  prepare: ({ text, body }) => ({
    text: editMembers(text, new Map([["model", JSON.stringify(model)]])),
    body: { ...body, model },
  }),
});

/** Serves chat at the path of Azure's clients, whose deployments are models or names of models. */
export const azureChat = defineEndpoint<ChatServices>({
  method: "POST",
  path: "/openai/deployments/:name/chat/completions",
  base: "root",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a chat completion at Azure's path.",
  description:
    "For clients of Azure OpenAI: the deployment is the id of a model or one of the operator's names, a slash in it encoded. " +
    "`api-version` is ignored. Send the key as `api-key` or as `Authorization: Bearer`.",
  tag: "Inference",
  rawBody: chatRequestSchema.partial({ model: true }),
  otherResponseTypes: ["text/event-stream"],
  answerHeaders: outputCapHeader,
  streamEvents: chatChunkSchema,
  headers: inferenceHeaders,
  response: chatCompletionSchema,
  encodeError: openaiChat.encodeError,
  async handle(context, dependencies) {
    const reader = deploymentReader(context.param("name"));
    return withCall(context, { reader, services: dependencies }, (call) =>
      withEarlyStream(
        context,
        { call, dialect: openaiChat, inference: dependencies.inference },
        async () => answerChat(context, call, dependencies),
      ),
    );
  },
});
