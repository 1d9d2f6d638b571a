import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../../access/define-endpoint.ts";
import { type Answer, Reply } from "../../../http/reply.ts";
import { anthropicMessages } from "../../../inference/dialects/anthropic-messages/index.ts";
import { messagesRequestSchema } from "../../../inference/dialects/anthropic-messages/request-schema.ts";
import { InvokeShaper } from "../../../inference/surfaces/bedrock/invoke-shaper.ts";
import { messageSchema, type MessagesServices } from "../../inference/messages.ts";
import { withCall } from "../../inference/read-call.ts";
import { messagesHeaders } from "../../inference/request-headers.ts";
import { withEarlyStream } from "../../inference/streams/early-stream.ts";
import { answerMessages } from "../../inference/tools/serve-dialogue.ts";
import { invokedReader } from "../invoked-reader.ts";
import { bedrockDoor, bedrockPath, modelOf } from "./door.ts";
import { eventStreamResponse } from "./event-stream.ts";

/** Serves a request of Messages as Bedrock takes it, whole or streamed. */
async function invoke(
  context: RequestContext,
  { stream, deps }: { stream: boolean; deps: MessagesServices },
): Promise<Answer> {
  const { reader, addBetas } = invokedReader({ model: modelOf(context), stream });
  return withCall(context, { reader, services: deps }, async (call) => {
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

/** Serves Bedrock's InvokeModel with Anthropic's body, on any model. */
export const bedrockInvoke = defineEndpoint<MessagesServices>({
  ...shared,
  ...bedrockPath("invoke"),
  summary: "Create a message in the form of Bedrock's InvokeModel.",
  description:
    "For Anthropic's clients of Amazon Bedrock, and Claude Code with CLAUDE_CODE_USE_BEDROCK: the path names the model, and the body is " +
    "one of Messages with `anthropic_version`. Bodies of other vendors' own forms are refused. Send the key as a bearer token.",
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
