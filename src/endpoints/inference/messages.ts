import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/anthropic-messages.ts";
import { messagesRequestSchema } from "../../inference/dialects/anthropic-messages/request-schema.ts";
import { validateMessagesEnvelope } from "../../inference/dialects/anthropic-messages/validate-envelope.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerCall } from "./answer-call.ts";
import { inMessagesWords } from "./in-messages-words.ts";
import { inferenceBodyBytesMax, readCall, type CallReader } from "./read-call.ts";
import { messagesHeaders } from "./request-headers.ts";
import { outputCapHeader } from "./served-headers.ts";
import { agentSessionHeader, tellingCaps } from "./spend-cap.ts";
import { messageEventSchema } from "./stream-events.ts";

/** How requests in Anthropic's dialect are read. */
export const messagesReader: CallReader = {
  dialect: "anthropic-messages",
  idPrefix: "msg_",
  validate: validateMessagesEnvelope,
  decode: anthropicMessages.decodeRequest,
  dialectHeaders: ["anthropic-version", "anthropic-beta"],
};

/** Messages in Anthropic's dialect, whole or streamed, on any model of the catalog. */
export const messages = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/messages",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a message, whole or streamed.",
  description:
    "Anthropic's Messages dialect on any model: native upstreams receive the body unchanged, others a translation. " +
    "The key travels as `x-api-key` or as `Authorization: Bearer`; the charge stands in `usage.cost`.",
  tag: "Inference",
  rawBody: messagesRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  headers: messagesHeaders,
  answerHeaders: outputCapHeader,
  streamEvents: messageEventSchema,
  response: z.looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: z.array(z.looseObject({ type: z.string() })),
    stop_reason: z.string().nullable(),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), cost: z.number() }),
  }),
  encodeError: anthropicMessages.encodeError,
  async handle(context, dependencies) {
    const call = await readCall(context, messagesReader, dependencies);
    const answer = () => answerCall(context, call, dependencies);
    return inMessagesWords(call, dependencies, () =>
      tellingCaps(
        {
          caller: call.caller,
          isAgent: context.request.headers.has(agentSessionHeader),
          answerHeaders: context.headers,
          deps: dependencies,
        },
        answer,
      ),
    );
  },
});
