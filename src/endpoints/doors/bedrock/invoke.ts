import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../../access/define-endpoint.ts";
import { type Answer, Reply } from "../../../http/reply.ts";
import { anthropicMessages } from "../../../inference/dialects/anthropic-messages/index.ts";
import { messagesRequestSchema } from "../../../inference/dialects/anthropic-messages/request-schema.ts";
import {
  invokedVectors,
  type InvokedVectors,
} from "../../../inference/surfaces/bedrock/invoked-vectors.ts";
import { InvokeShaper } from "../../../inference/surfaces/bedrock/invoke-shaper.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { messageSchema, type MessagesServices } from "../../inference/messages.ts";
import { answerVectors } from "../../inference/foreign-vectors.ts";
import { readSurfaceBody, withCall, type SurfaceBody } from "../../inference/read-call.ts";
import { messagesHeaders } from "../../inference/request-headers.ts";
import { withEarlyStream } from "../../inference/streams/early-stream.ts";
import { answerMessages } from "../../inference/tools/serve-dialogue.ts";
import { invokedReader } from "../invoked-reader.ts";
import { bedrockDoor, bedrockPath, modelOf } from "./door.ts";
import { eventStreamResponse } from "./event-stream.ts";

/** The header that has the input tokens; clients read it where a form has no count. */
const tokensHeader = "x-amzn-bedrock-input-token-count";

/** Answers a request for vectors in the form in which it was made. */
async function answerInvoked(
  context: RequestContext,
  { request, render }: InvokedVectors,
  { received, deps }: { received: SurfaceBody; deps: MessagesServices },
): Promise<Answer> {
  let used = 0;
  const reply = await answerVectors(context, deps, {
    received,
    modelOf: () => request.model,
    requestOf: () => request,
    render({ vectors, tokens }) {
      used = tokens;
      return render(vectors, tokens);
    },
  });
  reply.headers[tokensHeader] = String(used);
  return reply;
}

/** Serves a request of Messages as Bedrock takes it, whole or streamed, or one for vectors. */
async function invoke(
  context: RequestContext,
  { stream, deps }: { stream: boolean; deps: MessagesServices },
): Promise<Answer> {
  const model = modelOf(context);
  const received = await readSurfaceBody(context);
  const vectors = invokedVectors(received.body, model);
  if (vectors !== undefined) {
    if (stream) throw new GatewayError("bad_request", "Vectors are not streamed. Use /invoke.");
    return answerInvoked(context, vectors, { received, deps });
  }
  const { reader, addBetas } = invokedReader({ model, stream });
  return withCall(context, { reader: { ...reader, received }, services: deps }, async (call) => {
    addBetas(call);
    const { inference } = deps;
    const answer = await withEarlyStream(
      context,
      { call, dialect: anthropicMessages, inference },
      () => answerMessages(context, call, deps),
    );
    if (!(answer instanceof Reply) || typeof answer.body === "string") return answer;
    const { body, headers } = answer;
    const latencyMs = (): number => Math.round(deps.clock.monotonicMs() - context.startedMs);
    return eventStreamResponse(body, { shaper: new InvokeShaper(latencyMs), headers });
  });
}

const shared = {
  ...bedrockDoor,
  headers: messagesHeaders,
  rawBody: messagesRequestSchema.partial({ model: true }).extend({
    anthropic_version: z.string().describe("`bedrock-2023-05-31`."),
    anthropic_beta: z
      .array(z.string())
      .optional()
      .describe("Betas of Messages, which has them as a header."),
  }),
} as const;

/** Serves Bedrock's InvokeModel: messages in Anthropic's form, and vectors in those of their makers. */
export const bedrockInvoke = defineEndpoint<MessagesServices>({
  ...shared,
  ...bedrockPath("invoke"),
  summary: "Create a message in the form of Bedrock's InvokeModel.",
  description:
    "For Anthropic's clients of Amazon Bedrock, and Claude Code with CLAUDE_CODE_USE_BEDROCK: the path names the model, and the body is " +
    "one of Messages with `anthropic_version`. A body of Titan's, Nova's or Cohere's embedding models makes vectors on any embedding " +
    "model, and is answered in that form. Other forms are refused. Send the key as a bearer token.",
  response: messageSchema,
  handle: (context, deps) => invoke(context, { stream: false, deps }),
});

/** Serves Bedrock's InvokeModelWithResponseStream in the same way. */
export const bedrockInvokeStream = defineEndpoint<MessagesServices>({
  ...shared,
  ...bedrockPath("invoke-with-response-stream"),
  summary: "Create a message in the form of Bedrock's InvokeModelWithResponseStream.",
  description:
    "The same as `/invoke`, as Amazon's binary event stream: each event of Messages is the bytes of a chunk.",
  otherResponseTypes: ["application/octet-stream"],
  handle: (context, deps) => invoke(context, { stream: true, deps }),
});
