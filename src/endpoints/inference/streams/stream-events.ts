import { z } from "zod";
import { lazily } from "../../../http/endpoint.ts";

const item = z.looseObject({ type: z.string() });
const sequence = { sequence_number: z.int() };

const finishReasonField = z.enum(["stop", "length", "tool_calls", "content_filter", "error"]);

const chatUsageSchema = lazily(() =>
  z.looseObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    cost: z.number(),
    cost_details: z
      .looseObject({
        upstream_inference_cost: z
          .number()
          .nullish()
          .describe("Cost in USD that the provider reported."),
      })
      .optional()
      .describe("Cost as reported by the provider."),
  }),
);

const toolCallSchema = lazily(() =>
  z.looseObject({
    id: z.string(),
    type: z.string(),
    function: z.looseObject({ name: z.string(), arguments: z.string() }).optional(),
  }),
);

/** The description of a fallback to another model. */
const fallbackFields = lazily(() => ({
  requested_model: z.string().optional().describe("The requested model, if another one served."),
  fallback: z
    .looseObject({
      used: z.boolean().describe("Whether another model served."),
      reason: z.string().describe("Why the requested model did not serve."),
      attempts: z.array(z.looseObject({})).describe("The attempts."),
    })
    .optional()
    .describe("How the fallback was chosen."),
}));

const providerField = lazily(() =>
  z.string().optional().describe("The id of the provider that answered."),
);

/** A whole answer in the chat dialect. */
export const chatCompletionSchema = lazily(() =>
  z
    .looseObject({
      id: z.string(),
      object: z.literal("chat.completion"),
      created: z.int(),
      model: z.string(),
      choices: z.array(
        z.looseObject({
          index: z.int(),
          finish_reason: finishReasonField.nullable(),
          message: z
            .looseObject({
              role: z.literal("assistant"),
              content: z
                .string()
                .nullable()
                .describe("Text of the answer; null if it only calls tools."),
              tool_calls: z.array(toolCallSchema()).optional(),
              reasoning: z.string().nullish().describe("Reasoning text, if the model shows it."),
              refusal: z.string().nullish(),
            })
            .describe("The message of the answer."),
        }),
      ),
      usage: chatUsageSchema(),
      provider: providerField(),
      ...fallbackFields(),
      system_fingerprint: z
        .string()
        .nullish()
        .describe("The provider's fingerprint of its configuration."),
    })
    .meta({ id: "ChatCompletion" }),
);

/**
 * A chunk of a chat stream. The last one before `[DONE]` has the usage, the charge and the routing
 * facts.
 */
export const chatChunkSchema = lazily(() =>
  z
    .looseObject({
      id: z.string(),
      object: z.literal("chat.completion.chunk"),
      created: z.int(),
      model: z.string(),
      choices: z.array(
        z.looseObject({
          index: z.int(),
          finish_reason: finishReasonField.nullish(),
          delta: z.looseObject({
            role: z.string().optional(),
            content: z.string().nullish(),
            reasoning: z.string().nullish(),
            tool_calls: z
              .array(
                z.looseObject({
                  index: z.int(),
                  id: z.string().optional(),
                  function: z
                    .looseObject({ name: z.string().optional(), arguments: z.string().optional() })
                    .optional(),
                }),
              )
              .optional(),
          }),
        }),
      ),
      usage: chatUsageSchema()
        .partial({ cost: true })
        .nullish()
        .describe("Present on the last chunk before `[DONE]`."),
      provider: providerField(),
      ...fallbackFields(),
    })
    .meta({ id: "ChatCompletionChunk" }),
);

/** Returns the schema of a named event, which clients generated from the document need. */
const event = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.looseObject(shape).meta({ id });

/** An event of a Messages stream; `event:` and `type` are equal. */
export const messageEventSchema = lazily(() =>
  z
    .union([
      event("MessageStartEvent", {
        type: z.literal("message_start"),
        message: z.looseObject({ id: z.string(), model: z.string() }),
      }),
      event("ContentBlockStartEvent", {
        type: z.literal("content_block_start"),
        index: z.int(),
        content_block: item,
      }),
      event("ContentBlockDeltaEvent", {
        type: z.literal("content_block_delta"),
        index: z.int(),
        delta: item,
      }),
      event("ContentBlockStopEvent", { type: z.literal("content_block_stop"), index: z.int() }),
      event("MessageDeltaEvent", {
        type: z.literal("message_delta"),
        delta: z.looseObject({ stop_reason: z.string().nullish() }),
        usage: z.looseObject({ output_tokens: z.int() }),
      }),
      event("MessageStopEvent", { type: z.literal("message_stop") }),
      event("PingEvent", { type: z.literal("ping") }),
      event("MessageErrorEvent", {
        type: z.literal("error"),
        error: z.looseObject({ type: z.string(), message: z.string() }),
      }),
    ])
    .meta({ id: "MessageStreamEvent" }),
);

const lifecycle = [
  "created",
  "queued",
  "in_progress",
  "completed",
  "incomplete",
  "failed",
  "cancelled",
] as const;

/** An event of a Responses stream; `event:` and `type` are equal. */
export const responseEventSchema = lazily(() =>
  z
    .union([
      event("ResponseLifecycleEvent", {
        ...sequence,
        type: z.enum(lifecycle.map((state) => `response.${state}` as const)),
        response: z.looseObject({ id: z.string(), status: z.string() }),
      }),
      event("ResponseOutputItemEvent", {
        ...sequence,
        type: z.enum(["response.output_item.added", "response.output_item.done"]),
        output_index: z.int(),
        item,
      }),
      event("ResponseContentPartEvent", {
        ...sequence,
        type: z.enum(["response.content_part.added", "response.content_part.done"]),
        item_id: z.string(),
        output_index: z.int(),
        content_index: z.int(),
        part: item,
      }),
      event("ResponseTextDeltaEvent", {
        ...sequence,
        type: z.literal("response.output_text.delta"),
        item_id: z.string(),
        delta: z.string(),
      }),
      event("ResponseTextDoneEvent", {
        ...sequence,
        type: z.literal("response.output_text.done"),
        item_id: z.string(),
        text: z.string(),
      }),
      event("ResponseArgumentsDeltaEvent", {
        ...sequence,
        type: z.literal("response.function_call_arguments.delta"),
        item_id: z.string(),
        delta: z.string(),
      }),
      event("ResponseArgumentsDoneEvent", {
        ...sequence,
        type: z.literal("response.function_call_arguments.done"),
        item_id: z.string(),
        arguments: z.string(),
      }),
      event("ResponseErrorEvent", { type: z.literal("error"), message: z.string() }),
      event("ResponseOtherEvent", {
        type: z
          .string()
          .describe(
            "Events of reasoning, refusals, annotations and other tools, and routing metadata.",
          ),
      }),
    ])
    .meta({ id: "ResponseStreamEvent" }),
);
