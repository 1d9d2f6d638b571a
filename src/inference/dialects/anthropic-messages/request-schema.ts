import { z } from "zod";
import { gatewayFieldNames, gatewayShape, open } from "../shared-request-schema.ts";

const cacheControl = {
  cache_control: z
    .looseObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).optional() })
    .nullish(),
};

const textBlock = z.looseObject({
  type: z.literal("text"),
  text: z.string(),
  citations: z.array(open).nullish(),
  ...cacheControl,
});

const block = z.lazy(() =>
  z.union([
    textBlock,
    z.looseObject({
      type: z.literal("image"),
      source: z
        .looseObject({ type: z.enum(["base64", "url", "file"]) })
        .describe("base64: media_type and data; url: url; file: file_id."),
      ...cacheControl,
    }),
    z.looseObject({
      type: z.literal("document"),
      source: z.looseObject({ type: z.enum(["base64", "text", "content", "url", "file"]) }),
      title: z.string().nullish(),
      context: z.string().nullish(),
      citations: z.looseObject({ enabled: z.boolean().optional() }).nullish(),
      ...cacheControl,
    }),
    z.looseObject({
      type: z.literal("search_result"),
      source: z.string(),
      title: z.string(),
      content: z.array(textBlock),
      ...cacheControl,
    }),
    z.looseObject({
      type: z.literal("thinking"),
      thinking: z.string(),
      signature: z.string().describe("As it came; a thought may be left out, but never changed."),
    }),
    z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() }),
    z.looseObject({
      type: z.literal("tool_use"),
      id: z.string(),
      name: z.string(),
      input: z.unknown(),
      ...cacheControl,
    }),
    z.looseObject({
      type: z.literal("tool_result"),
      tool_use_id: z.string(),
      content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
      is_error: z.boolean().nullish(),
      ...cacheControl,
    }),
    z.looseObject({ type: z.string() }),
  ]),
);

const message = z
  .lazy(() =>
    z.looseObject({
      role: z.enum(["user", "assistant", "system"]),
      content: z.union([z.string(), z.array(block)]),
    }),
  )
  .describe("A message. Blocks of other types are kept for upstreams of the same dialect.");

const tool = z.lazy(() =>
  z.union([
    z.looseObject({
      type: z.literal("custom").nullish(),
      name: z.string(),
      description: z.string().nullish(),
      input_schema: open,
      strict: z.boolean().nullish(),
      defer_loading: z.boolean().nullish(),
      input_examples: z.array(z.unknown()).nullish(),
      ...cacheControl,
    }),
    z.looseObject({
      type: z.string().describe("A tool that the provider runs, by its dated type."),
    }),
  ]),
);

const prompt = {
  model: z
    .string()
    .min(1)
    .describe("Model id, a router id or @preset/<slug>, with an optional suffix."),
  messages: z.array(message).min(1),
  system: z.union([z.string(), z.array(textBlock), z.null()]).optional(),
  tools: z.array(tool).nullish(),
  tool_choice: z
    .looseObject({
      type: z.enum(["auto", "any", "tool", "none"]),
      name: z.string().optional(),
      disable_parallel_tool_use: z.boolean().optional(),
    })
    .nullish(),
  thinking: z
    .looseObject({
      type: z.enum(["enabled", "disabled", "adaptive", "between_tools"]),
      budget_tokens: z.int().optional(),
      display: z.string().nullish(),
    })
    .nullish(),
  output_config: z
    .looseObject({
      effort: z.string().nullish(),
      format: z.looseObject({ type: z.literal("json_schema"), schema: open }).nullish(),
    })
    .nullish(),
};

/**
 * The body of `POST /messages`: the contract's fields and Anthropic's reference (@anthropic-ai/sdk 1.11).
 * It describes; requests are checked by `validateMessagesEnvelope` and by the decoder, and fields that
 * stand in neither survive towards upstreams of the same dialect.
 */
export const messagesRequestSchema = z.looseObject({
  ...prompt,
  max_tokens: z.int().min(0).describe("Bound on output tokens."),
  stream: z.boolean().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().nullish(),
  metadata: z.looseObject({ user_id: z.string().nullish() }).nullish(),
  service_tier: z.enum(["auto", "standard_only"]).nullish(),
  ...gatewayShape,
});

/** The body of `POST /messages/count_tokens`. */
export const countTokensRequestSchema = z.looseObject(prompt);

/** Request fields that speak to the gateway; removed from every body that goes upstream. */
export const messagesGatewayFields = gatewayFieldNames;
