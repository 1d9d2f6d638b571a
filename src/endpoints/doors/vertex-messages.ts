import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { pathOf } from "../../http/request-context.ts";
import type { Answer } from "../../http/reply.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/index.ts";
import {
  checkCountRequest,
  messagesRequestSchema,
} from "../../inference/dialects/anthropic-messages/request-schema.ts";
import { countTokens } from "../../inference/pipeline/unbilled-requests.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { outputCapHeader } from "../inference/answer-call.ts";
import { messageSchema, type MessagesServices, tokenCountHeader } from "../inference/messages.ts";
import { inferenceBodyBytesMax, readCall, withCall } from "../inference/read-call.ts";
import { messagesHeaders } from "../inference/request-headers.ts";
import { withEarlyStream } from "../inference/streams/early-stream.ts";
import { messageEventSchema } from "../inference/streams/stream-events.ts";
import { answerMessages } from "../inference/tools/serve-dialogue.ts";
import { invokedReader } from "./invoked-reader.ts";

const place = "/projects/:project/locations/:location/publishers/anthropic/models";

/** What the path says in place of a model where tokens are counted. */
const countsTokens = "count-tokens";

/** Reads the model and the method of a path. Ids may have slashes and colons. */
function askedIn(context: RequestContext): { model: string; method: string } {
  const [, named = ""] = decoded(pathOf(context.request)).split("/publishers/anthropic/models/");
  const end = named.lastIndexOf(":");
  return { model: named.slice(0, Math.max(end, 0)), method: named.slice(end + 1) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Counts tokens of a body that names its model itself. */
async function count(context: RequestContext, deps: MessagesServices): Promise<Answer> {
  const { reader, addBetas } = invokedReader({});
  const call = await readCall(context, { ...reader, validate: checkCountRequest }, deps);
  addBetas(call);
  const { inputTokens, source } = await countTokens(deps.inference, call);
  return context.json({ input_tokens: inputTokens }, { headers: { [tokenCountHeader]: source } });
}

/** Serves Anthropic's Messages where its clients for Vertex AI look for it, on any model. */
export const vertexMessages = defineEndpoint<MessagesServices>({
  method: "POST",
  path: `/v1${place}/:model`,
  alsoAt: [`/v1${place}/*`, `/v1beta1${place}/*`],
  base: "root",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a message in the form of Vertex AI.",
  description:
    "For Anthropic's clients of Vertex AI, and Claude Code with CLAUDE_CODE_USE_VERTEX: `{model}` is the id of a model, a colon and " +
    "rawPredict or streamRawPredict; `count-tokens:rawPredict` counts. Project and location may be any. The body is one of Messages " +
    "with `anthropic_version`. Send the key as `Authorization: Bearer`.",
  tag: "Inference",
  headers: messagesHeaders,
  answerHeaders: outputCapHeader,
  rawBody: messagesRequestSchema.partial({ model: true }).extend({
    anthropic_version: z.string().describe("`vertex-2023-10-16`."),
  }),
  otherResponseTypes: ["text/event-stream"],
  streamEvents: messageEventSchema,
  response: messageSchema,
  encodeError: anthropicMessages.encodeError,
  async handle(context, deps) {
    const { model, method } = askedIn(context);
    if (method !== "rawPredict" && method !== "streamRawPredict")
      throw new GatewayError(
        "not_found",
        `There is no method ${JSON.stringify(method)} here. A path ends with a model, a colon and rawPredict or streamRawPredict.`,
      );
    if (model === countsTokens) return count(context, deps);
    const stream = method === "streamRawPredict";
    const { reader, addBetas } = invokedReader({ model, stream });
    return withCall(context, { reader, services: deps }, (call) => {
      addBetas(call);
      return withEarlyStream(
        context,
        { call, dialect: anthropicMessages, inference: deps.inference },
        () => answerMessages(context, call, deps),
      );
    });
  },
});
