import { z } from "zod";

const usdPerMillion = z.number().describe("USD per million tokens");

const listPricingSchema = z.object({ input_per_1m: usdPerMillion, output_per_1m: usdPerMillion });

const pricingSchema = z.lazy(() =>
  z.looseObject({
    prompt: z.string().describe("USD per token"),
    completion: z.string().describe("USD per token"),
    input_per_1m: usdPerMillion,
    output_per_1m: usdPerMillion,
    billing: z
      .enum(["byok", "member"])
      .optional()
      .describe(
        "byok: the provider bills the caller's own key, so 0 is not free. member: the price is that of the member that serves.",
      ),
    list_pricing: listPricingSchema.optional(),
    lowest: listPricingSchema.optional(),
  }),
);

const reasoningSchema = z.object({ levels: z.array(z.string()), default: z.string().optional() });

const modelReasoningSchema = reasoningSchema.extend({
  supported_efforts: z
    .array(z.string())
    .describe("The levels again, where OpenRouter's clients look for them."),
  default_effort: z.string().nullable().describe("The default again; null where none is declared."),
  mandatory: z
    .boolean()
    .describe(
      "Whether nothing is known that turns thinking off: neither a level nor the dialect of a route.",
    ),
});

const architectureSchema = z.object({
  modality: z.string().describe("Input and output in one word, such as text+image->text."),
  input_modalities: z
    .array(z.enum(["text", "image", "file", "audio"]))
    .describe("What the model takes."),
  output_modalities: z
    .array(z.enum(["text", "embeddings", "rerank", "decisions"]))
    .describe("What it gives."),
  instruct_type: z.null().describe("Always null: not known."),
});

const upstreamSchema = z
  .lazy(() =>
    z.looseObject({
      provider: z.string(),
      reasoning: reasoningSchema.optional().describe("Overrides the model's; absent inherits it"),
      features: z.object({ reasoning: z.boolean().optional() }),
      supported_parameters: z
        .array(z.string())
        .optional()
        .describe("Authoritative for this route; absent is permissive"),
      context: z.object({
        context_length: z.int().optional(),
        max_completion_tokens: z.int().optional(),
      }),
      pricing: z
        .record(z.string(), z.number())
        .optional()
        .describe("USD per million tokens, per_request in USD"),
      quantization: z.string().optional(),
      data_policy: z.object({
        zdr: z.boolean().optional(),
        data_collection: z.enum(["allow", "deny"]).optional(),
        distillable_text: z.boolean().optional(),
      }),
      billing: z
        .literal("byok")
        .optional()
        .describe("byok: the provider bills the caller's own key."),
    }),
  )
  .meta({ id: "ModelRoute" });

/** A model object as OpenAPI describes it. */
export const modelObjectSchema = z
  .lazy(() =>
    z.looseObject({
      id: z.string(),
      object: z.literal("model"),
      display_name: z.string(),
      name: z.string().describe("The display name again, where OpenRouter's clients look for it."),
      canonical_slug: z.string().describe("The id again."),
      provider: z.string().describe("The organization that owns the model"),
      owned_by: z.string().describe("The same, under OpenAI's name"),
      providers: z.array(z.string()).describe("Who can serve it"),
      category: z.enum(["text", "image", "audio", "embedding"]),
      context_length: z.int(),
      pricing: pricingSchema,
      capabilities: z.array(z.string()),
      architecture: architectureSchema.describe("What the model takes and gives."),
      links: z.object({ details: z.string(), metrics: z.string() }),
      reasoning: modelReasoningSchema
        .optional()
        .describe("Effort levels that the model takes; absent where none are declared."),
      supported_parameters: z
        .array(z.string())
        .describe("Parameters that any route declares; empty where none does, which allows all."),
      default_parameters: z.null().describe("Always null: the gateway sets no defaults."),
      per_request_limits: z.null().describe("Always null: there are none beside the lengths."),
      supported_voices: z.null().describe("Always null: no voices are served."),
      top_provider: z.object({
        context_length: z.int().describe("The same as context_length of the model."),
        max_completion_tokens: z.int().nullable(),
        is_moderated: z
          .literal(false)
          .describe("Always false: the gateway moderates nothing by itself."),
      }),
      per_upstream: z.array(upstreamSchema),
      members: z
        .array(z.string())
        .optional()
        .describe("Of a routing preset, in the order in which it tries them"),
      description: z.string().optional(),
      created: z.int().describe("Unix seconds; 0 where it is not known"),
      coming_soon: z.literal(true).optional().describe("Announced; calls answer 404"),
    }),
  )
  .meta({ id: "Model" });
