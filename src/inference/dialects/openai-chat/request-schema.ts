import { z } from "zod";
import {
  gatewayFieldNames,
  gatewayShape,
  identityShape,
  open,
  reasoningShape,
  samplingShape,
  topLogprobs,
} from "../shared-request-schema.ts";

const cacheMarkers = {
  cache_control: z
    .looseObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).optional() })
    .nullish()
    .describe("Cache marker as Messages spells it; kept where the upstream knows it."),
  prompt_cache_breakpoint: z
    .looseObject({ mode: z.literal("explicit"), ttl: z.string().optional() })
    .nullish()
    .describe("Marks the end of a reusable prompt prefix."),
};

const textPart = z.looseObject({ type: z.literal("text"), text: z.string(), ...cacheMarkers });
const contentParts = z.lazy(() =>
  z.array(
    z.union([
      textPart,
      z.looseObject({
        type: z.literal("image_url"),
        image_url: z.looseObject({
          url: z.string(),
          detail: z.enum(["auto", "low", "high", "original"]).optional(),
        }),
        ...cacheMarkers,
      }),
      z.looseObject({
        type: z.literal("input_audio"),
        input_audio: z.looseObject({
          data: z.string(),
          format: z.string().describe("wav or mp3; others where the model takes them."),
        }),
        ...cacheMarkers,
      }),
      z.looseObject({
        type: z.literal("file"),
        file: z.looseObject({
          file_data: z.string().optional(),
          file_id: z.string().optional(),
          filename: z.string().optional(),
        }),
        ...cacheMarkers,
      }),
      z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
      z.looseObject({ type: z.string() }),
    ]),
  ),
);

const toolCall = z.lazy(() =>
  z.union([
    z.looseObject({
      id: z.string(),
      type: z.literal("function").optional(),
      function: z.looseObject({
        name: z.string(),
        arguments: z.string().describe("JSON text of an object."),
      }),
    }),
    z.looseObject({
      id: z.string(),
      type: z.literal("custom"),
      custom: z.looseObject({ name: z.string(), input: z.string() }),
    }),
  ]),
);

const message = z
  .lazy(() =>
    z.looseObject({
      role: z.enum(["developer", "system", "user", "assistant", "tool", "function"]),
      content: z.union([z.string(), contentParts, z.null()]).optional(),
      name: z.string().nullish(),
      tool_calls: z.array(toolCall).nullish(),
      tool_call_id: z.string().nullish().describe("On tool messages: the call that is answered."),
      refusal: z.string().nullish(),
      audio: z.looseObject({ id: z.string() }).nullish(),
      function_call: z
        .looseObject({ name: z.string(), arguments: z.string() })
        .nullish()
        .describe("Older form of tool_calls."),
      reasoning_content: z
        .string()
        .nullish()
        .describe("Earlier thoughts, replayed to upstreams that want them."),
      reasoning: z.string().nullish(),
      reasoning_details: z.array(open).nullish(),
    }),
  )
  .describe("A message. Fields that are not listed are kept for upstreams of the same dialect.");

const tool = z.lazy(() =>
  z.union([
    z.looseObject({
      type: z.literal("function"),
      function: z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        parameters: open.nullish().describe("JSON Schema of the arguments."),
        strict: z.boolean().nullish(),
      }),
    }),
    z.looseObject({
      type: z.literal("custom"),
      custom: z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        format: z.looseObject({ type: z.enum(["text", "grammar"]) }).nullish(),
      }),
    }),
    z.looseObject({ type: z.string() }),
  ]),
);

const count = z.int().positive().nullish();

/**
 * The body of `POST /chat/completions`: the contract's fields, OpenAI's reference (openai 7.55) and the
 * extensions that compatible servers know. It describes; requests are checked by `validateChatEnvelope`
 * and by the decoder, and fields that stand in neither survive.
 */
export const chatRequestSchema = z.looseObject({
  model: z
    .string()
    .min(1)
    .describe("Model id, a router id or @preset/<slug>, with an optional suffix."),
  messages: z.array(message).min(1),
  ...gatewayShape,
  trace: z
    .looseObject({
      trace_id: z.string().optional(),
      trace_name: z.string().optional(),
      span_name: z.string().optional(),
      generation_name: z.string().optional(),
      parent_span_id: z.string().optional(),
    })
    .nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({
      include_usage: z.boolean().optional(),
      include_obfuscation: z.boolean().optional(),
    })
    .nullish(),
  ...samplingShape,
  logit_bias: z.record(z.string(), z.number()).nullish(),
  n: z.int().min(1).max(128).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4), z.null()]).optional(),
  max_completion_tokens: count,
  max_tokens: count.describe("Older name of max_completion_tokens."),
  logprobs: z.boolean().nullish(),
  top_logprobs: topLogprobs,
  tools: z.array(tool).nullish(),
  tool_choice: z.union([z.string(), open]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  functions: z
    .array(
      z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        parameters: open.nullish(),
      }),
    )
    .nullish()
    .describe("Older form of tools."),
  function_call: z
    .union([z.string(), z.looseObject({ name: z.string() })])
    .nullish()
    .describe("Older form of tool_choice."),
  response_format: z.looseObject({ type: z.string(), json_schema: open.optional() }).nullish(),
  reasoning_effort: z
    .string()
    .nullish()
    .describe("none disables; the other names are the model's own."),
  reasoning: z.looseObject(reasoningShape).nullish(),
  verbosity: z.string().nullish(),
  modalities: z.array(z.string()).nullish(),
  audio: z.looseObject({ format: z.string(), voice: z.unknown() }).nullish(),
  prediction: z
    .looseObject({ type: z.literal("content"), content: z.union([z.string(), z.array(textPart)]) })
    .nullish(),
  web_search_options: z
    .looseObject({ search_context_size: z.string().optional(), user_location: open.nullish() })
    .nullish(),
  store: z.boolean().nullish(),
  ...identityShape,
});

/** Request fields with a name of their own; all others are kept as extensions. */
export const chatRequestFields: ReadonlySet<string> = new Set(Object.keys(chatRequestSchema.shape));

/** Request fields that speak to the gateway; removed from every body that goes upstream. */
export const chatGatewayFields = gatewayFieldNames;
