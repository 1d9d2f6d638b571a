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

const contentPart = z.lazy(() =>
  z.union([
    z.looseObject({ type: z.literal("input_text"), text: z.string() }),
    z.looseObject({
      type: z.literal("input_image"),
      image_url: z.string().nullish().describe("An address or a data URL."),
      file_id: z.string().nullish(),
      detail: z.enum(["auto", "low", "high", "original"]).nullish(),
    }),
    z.looseObject({
      type: z.literal("input_file"),
      file_data: z.string().nullish(),
      file_id: z.string().nullish(),
      file_url: z.string().nullish(),
      filename: z.string().nullish(),
    }),
    z.looseObject({
      type: z.literal("input_audio"),
      input_audio: z.looseObject({ data: z.string(), format: z.string() }),
    }),
    z.looseObject({
      type: z.literal("output_text"),
      text: z.string(),
      annotations: z.array(open).nullish(),
    }),
    z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
    z.looseObject({ type: z.string() }),
  ]),
);

const output = z.union([z.string(), z.array(contentPart)]);

const inputItem = z
  .lazy(() =>
    z.union([
      z.looseObject({
        type: z.literal("message").optional(),
        role: z.enum(["user", "assistant", "system", "developer"]),
        content: z.union([z.string(), z.array(contentPart)]),
        phase: z.string().nullish(),
      }),
      z.looseObject({
        type: z.literal("function_call"),
        call_id: z.string(),
        name: z.string(),
        arguments: z.string(),
        namespace: z.string().nullish(),
      }),
      z.looseObject({ type: z.literal("function_call_output"), call_id: z.string(), output }),
      z.looseObject({
        type: z.literal("custom_tool_call"),
        call_id: z.string(),
        name: z.string(),
        input: z.string(),
      }),
      z.looseObject({ type: z.literal("custom_tool_call_output"), call_id: z.string(), output }),
      z.looseObject({
        type: z.literal("reasoning"),
        id: z.string().nullish(),
        summary: z.array(open).nullish(),
        content: z.array(open).nullish(),
        encrypted_content: z
          .string()
          .nullish()
          .describe("Goes back to the provider that made it, and to no other."),
      }),
      z.looseObject({ type: z.literal("item_reference"), id: z.string() }),
      z.looseObject({ type: z.string() }),
    ]),
  )
  .describe("An input item. Types that are not listed are kept for upstreams of the same dialect.");

const tool = z.lazy(() =>
  z.union([
    z.looseObject({
      type: z.literal("function"),
      name: z.string(),
      description: z.string().nullish(),
      parameters: open.nullish().describe("JSON Schema of the arguments."),
      strict: z.boolean().nullish(),
    }),
    z.looseObject({
      type: z.literal("custom"),
      name: z.string(),
      description: z.string().nullish(),
      format: open.nullish(),
    }),
    z.looseObject({ type: z.literal("namespace"), name: z.string(), tools: z.array(open) }),
    z
      .looseObject({ type: z.string() })
      .describe("Tools that the provider runs; left out for upstreams that lack them."),
  ]),
);

/**
 * The body of `POST /responses`: the contract's fields, OpenAI's reference (openai 7.55) and what Open
 * Responses adds. It describes; requests are checked by `validateResponsesEnvelope` and by the decoder,
 * and fields that stand in neither survive.
 */
export const responsesRequestSchema = z.looseObject({
  model: z
    .string()
    .min(1)
    .describe("Model id, a router id or @preset/<slug>, with an optional suffix."),
  input: z.union([z.string(), z.array(inputItem)]),
  instructions: z.string().nullish(),
  ...gatewayShape,
  previous_response_id: z
    .string()
    .nullish()
    .describe("Continue from a stored response of the same workspace."),
  conversation: z
    .null()
    .optional()
    .describe(
      "Not offered: conversations would be the provider's; continue with previous_response_id.",
    ),
  store: z.boolean().nullish().describe("Default true."),
  background: z.boolean().nullish().describe("Creates a queued stored response."),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).nullish(),
  include: z.array(z.string()).nullish(),
  max_output_tokens: z.int().positive().nullish(),
  max_tool_calls: z.int().nullish(),
  ...samplingShape,
  top_logprobs: topLogprobs,
  tools: z.array(tool).nullish(),
  tool_choice: z.union([z.string(), open]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning: z.looseObject(reasoningShape).nullish(),
  text: z
    .looseObject({
      format: z.looseObject({ type: z.string() }).nullish(),
      verbosity: z.string().nullish(),
    })
    .nullish(),
  modalities: z.array(z.string()).nullish(),
  truncation: z.string().nullish(),
  ...identityShape,
});

/** Request fields that speak to the gateway; removed from every body that goes upstream. */
export const responsesGatewayFields = gatewayFieldNames;

/** Request fields of the stored lifecycle, which the gateway keeps itself: an upstream stores nothing. */
export const responsesLifecycleFields = [
  "previous_response_id",
  "conversation",
  "background",
] as const;

/** Request fields with a name of their own; all others are kept as extensions. */
export const responsesRequestFields: ReadonlySet<string> = new Set(
  Object.keys(responsesRequestSchema.shape).filter(
    (key) => key !== "max_tool_calls" && key !== "truncation",
  ),
);
