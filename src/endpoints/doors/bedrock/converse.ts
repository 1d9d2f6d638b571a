import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../../access/define-endpoint.ts";
import { type Answer, Reply } from "../../../http/reply.ts";
import type { JsonObject } from "../../../inference/canonical/json.ts";
import {
  ConverseShaper,
  converseOfMessage,
} from "../../../inference/surfaces/bedrock/converse-shaper.ts";
import { messagesOfConverse } from "../../../inference/surfaces/bedrock/converse-request.ts";
import { answerCall } from "../../inference/answer-call.ts";
import { messagesReader } from "../../inference/messages.ts";
import { withCall, type CallReader, type CallServices } from "../../inference/read-call.ts";
import { inferenceHeaders } from "../../inference/request-headers.ts";
import { bedrockDoor, bedrockPath, modelOf } from "./door.ts";
import { eventStreamResponse } from "./event-stream.ts";

/** Serves a request in Converse's form, whole or streamed. */
async function converse(
  context: RequestContext,
  { stream, deps }: { stream: boolean; deps: CallServices },
): Promise<Answer> {
  const model = modelOf(context);
  const reader: CallReader = {
    ...messagesReader,
    reshape: (body) => messagesOfConverse(body as JsonObject, { model, stream }),
  };
  return withCall(context, { reader, services: deps }, async (call) => {
    call.recordedAs = "converse";
    const answer = await answerCall(context, call, deps);
    if (!(answer instanceof Reply)) return answer;
    const { body, headers } = answer;
    const latencyMs = (): number => Math.round(deps.clock.monotonicMs() - context.startedMs);
    if (typeof body === "string") {
      const converseAnswer = converseOfMessage(JSON.parse(body) as JsonObject, latencyMs());
      return new Reply(JSON.stringify(converseAnswer), { headers });
    }
    return eventStreamResponse(body, { shaper: new ConverseShaper(latencyMs), headers });
  });
}

const block = z.looseObject({});

const shared = {
  ...bedrockDoor,
  headers: inferenceHeaders,
  rawBody: z.looseObject({
    messages: z
      .array(z.looseObject({ role: z.string(), content: z.array(block) }))
      .describe("The conversation, in Converse's blocks."),
    system: z.array(block).nullish(),
    inferenceConfig: block.nullish().describe("maxTokens, temperature, topP, stopSequences."),
    toolConfig: block.nullish().describe("Tools by toolSpec, and toolChoice."),
    additionalModelRequestFields: block
      .nullish()
      .describe("thinking, top_k, output_config and context_management are used."),
  }),
} as const;

/** Serves Bedrock's Converse on any model. */
export const bedrockConverse = defineEndpoint<CallServices>({
  ...shared,
  ...bedrockPath("converse"),
  summary: "Chat in the form of Bedrock's Converse.",
  description:
    "For clients of Amazon Bedrock Runtime: the model is an id or a name of models, a slash in it encoded. " +
    "Send the key as a bearer token, as `AWS_BEARER_TOKEN_BEDROCK` does; signatures are not read. " +
    "Guardrails of Bedrock are refused, not ignored.",
  response: () =>
    z.looseObject({
      output: z.looseObject({}).describe("The message, as `message`."),
      stopReason: z.string().describe("Why the answer ended."),
      usage: z.looseObject({}).describe("Tokens, and the charge as `cost`."),
      metrics: z.looseObject({}).describe("`latencyMs`."),
    }),
  handle: (context, deps) => converse(context, { stream: false, deps }),
});

/** Serves Bedrock's ConverseStream on any model. */
export const bedrockConverseStream = defineEndpoint<CallServices>({
  ...shared,
  ...bedrockPath("converse-stream"),
  summary: "Chat in the form of Bedrock's ConverseStream.",
  description: "The same as `/converse`, as Amazon's binary event stream.",
  otherResponseTypes: ["application/octet-stream"],
  handle: (context, deps) => converse(context, { stream: true, deps }),
});
