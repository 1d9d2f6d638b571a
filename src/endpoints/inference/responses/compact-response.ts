import { z } from "zod";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import { defineEndpoint } from "../../../access/define-endpoint.ts";
import { lazily } from "../../../http/endpoint.ts";
import { chatCall } from "../../../inference/pipeline/chat-call.ts";
import { openaiResponses } from "../../../inference/dialects/openai-responses/index.ts";
import { execute } from "../../../inference/pipeline/execute.ts";
import {
  compactionItem,
  compactionRequest,
  readStoredRequest,
} from "../../../inference/responses/stored-request.ts";
import { assert } from "../../../platform/kernel/assert.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../dependencies.ts";
import { wholeResponse, wholeText } from "../answer-call.ts";
import {
  inferenceBodyBytesMax,
  readCall,
  type CallReader,
  type CallServices,
} from "../read-call.ts";
import { responsesReader } from "./responses.ts";

/**
 * Reads requests like those for responses, except that `input` may be omitted where
 * `previous_response_id` names the conversation.
 */
export const conversationReader: CallReader = {
  ...responsesReader,
  validate(body) {
    const isStored =
      (body["input"] ?? null) === null && typeof body["previous_response_id"] === "string";
    responsesReader.validate(isStored ? { ...body, input: "" } : body);
  },
};

/** The fields that state a conversation: its input, or the id of a stored response, or both. */
export const conversationSchema = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(z.looseObject({}))]).nullish(),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
});

const itemSchema = z.looseObject({ type: z.string() });

const usageSchema = lazily(() =>
  z.looseObject({
    input_tokens: z.int(),
    output_tokens: z.int(),
    total_tokens: z.int(),
    cost: z.number().optional(),
  }),
);

/** The members of the summarising answer that are read. */
const answerSchema = z.looseObject({
  id: z.string(),
  created_at: z.int(),
  output_text: z.string(),
  usage: z.unknown(),
  service_metadata: z.unknown(),
});

/**
 * Replaces a conversation by a summary that the model itself writes, as an item that the next
 * request begins with.
 */
export const compactResponse = defineEndpoint<CallServices & Pick<Dependencies, "responses">>({
  method: "POST",
  path: "/responses/compact",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  summary: "Compact a conversation.",
  description:
    "The model summarises the conversation of input and previous_response_id; it is charged like any other request. Send output at " +
    "the beginning of the next request's input, to any model.",
  tag: "Inference",
  bodyBytesMax: inferenceBodyBytesMax,
  rawBody: conversationSchema,
  response: () =>
    z.looseObject({
      id: z.string(),
      object: z.literal("response.compaction"),
      created_at: z.int(),
      output: z.array(itemSchema),
      usage: usageSchema(),
    }),
  encodeError: openaiResponses.encodeError,
  async handle(context, dependencies) {
    const { inference, responses } = dependencies;
    const sent = await readCall(context, conversationReader, dependencies);
    const { workspace } = context.caller as LlmKeyCaller;
    const { conversation } = await readStoredRequest(responses, {
      body: { ...sent.body, input: sent.body["input"] ?? [], store: false, background: false },
      workspaceId: workspace.id,
    });
    const body = compactionRequest(sent.body, conversation);
    const { presetId, dialectHeaders, signatures, nowSeconds } = sent;
    const call = chatCall(sent, {
      dialect: responsesReader.dialect,
      presetId,
      dialectHeaders,
      signatures,
      nowSeconds,
      body,
      text: JSON.stringify(body),
    });
    const served = await execute(inference, call);
    assert(served.kind === "whole", "a compaction is not streamed");
    const answer = answerSchema.parse(JSON.parse(wholeText(served, call)));
    if (answer.output_text.trim() === "") {
      throw new GatewayError(
        "upstream_invalid_response",
        "The model wrote no summary; what it used was charged. Try another model.",
      );
    }
    const { id, created_at: createdAt, usage, service_metadata: metadata } = answer;
    const output = [compactionItem(`cmp_${id.replace(/^resp_/, "")}`, answer.output_text)];
    const text = JSON.stringify({
      id,
      object: "response.compaction",
      created_at: createdAt,
      output,
      usage,
      ...(metadata === undefined ? {} : { service_metadata: metadata }),
    });
    return wholeResponse(context, { served, call, text });
  },
});
