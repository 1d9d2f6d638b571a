import { z } from "zod";
import { picoPerTokenFromUsdPerMillion } from "../../../platform/kernel/money.ts";
import { proxyProblem } from "../../../platform/kernel/network/proxy-rules.ts";
import { dialectIds } from "../../canonical/dialect-id.ts";
import { contradictedBy, deviationNames, surfaces } from "../../providers/provider-definition.ts";
import { providerDefinitions } from "../../providers/index.ts";

/** An address, or an environment reference that is resolved when the catalog is built. */
const baseUrlSchema = z
  .string()
  .refine(
    (text) =>
      text.includes("${") ||
      (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && !/[?#]/.test(text)),
    "expected an http(s) URL without query and fragment, such as https://api.example.com/v1",
  );

const surfaceSchema = z.enum(surfaces);

/** A dialect for a provider, or one for each surface that it offers. */
const dialectSchema = z.union([
  z.enum(dialectIds),
  z
    .strictObject({
      chat: z.enum(dialectIds),
      embeddings: z.enum([
        "openai-embeddings",
        "cohere-embed",
        "voyage-embeddings",
        "jina-embeddings",
        "google-embed",
      ]),
      rerank: z.enum(["cohere-rerank", "jina-rerank", "voyage-rerank"]),
      moderations: z.enum(["openai-moderations", "guard-chat"]),
      decisions: z.enum(["decisions", "chat-logprobs"]),
      documents: z.enum(["documents-parse"]),
      images: z.enum(["openai-images", "google-images"]),
      transcriptions: z.enum(["openai-audio", "google-audio", "deepgram", "elevenlabs"]),
      speech: z.enum(["openai-audio", "google-audio", "deepgram", "elevenlabs"]),
      realtime: z.enum(["openai-realtime", "azure-realtime", "google-live"]),
    })
    .partial(),
]);

/** A price as decimal text or number, not negative. */
const priceSchema = z
  .union([z.string(), z.number()])
  .refine(
    (price) => (picoPerTokenFromUsdPerMillion(price) ?? -1n) >= 0n,
    'must be a decimal number of USD that is not negative, such as "0.50"',
  );

/** USD per million tokens. */
const textPricing = { prompt: priceSchema, completion: priceSchema };

/** USD per million tokens of other kinds. */
const otherTokenPricing = {
  cache_read: priceSchema.optional(),
  cache_write: priceSchema.optional(),
  cache_write_1h: priceSchema.optional(),
  reasoning: priceSchema.optional(),
  audio: priceSchema.optional(),
  image_input: priceSchema.optional(),
  image_output: priceSchema.optional(),
  image_cache_read: priceSchema.optional(),
  audio_input: priceSchema.optional(),
  audio_output: priceSchema.optional(),
  audio_cache_read: priceSchema.optional(),
};

/**
 * The price of a picture in USD: a number, or one by size, or one by size and quality, where
 * `default` is the row of any other. For a model of chat, a number is USD per million tokens of
 * pictures that are sent to it.
 */
const pictureSchema = z.union([
  priceSchema,
  z.record(
    z.string().min(1).toLowerCase(),
    z.union([priceSchema, z.record(z.string().min(1).toLowerCase(), priceSchema)]),
  ),
]);

/**
 * The prices at a level, by the value of the request field that asks for it: a factor of the
 * ordinary token prices, or prices of their own.
 */
const levelsSchema = z
  .record(
    z.string().min(1),
    z.union([
      priceSchema,
      z.strictObject({ ...textPricing, ...otherTokenPricing, image: priceSchema.optional() }),
    ]),
  )
  .optional();

/**
 * Token prices; in USD those of each picture, request, search and call of the provider's tools; in
 * USD per minute those of sound, per second that of video, and per million that of characters.
 */
const pricingSchema = z.strictObject({
  prompt: priceSchema.optional(),
  completion: priceSchema.optional(),
  ...otherTokenPricing,
  image: pictureSchema.optional(),
  audio_input_minute: priceSchema.optional(),
  audio_output_minute: priceSchema.optional(),
  characters: priceSchema.optional(),
  video_second: priceSchema.optional(),
  minimum_ms: z.int().positive().optional(),
  request: priceSchema.optional(),
  search: priceSchema.optional(),
  tools: z.record(z.string().min(1), priceSchema).optional(),
  service_tier: levelsSchema,
  speed: levelsSchema,
  inference_geo: levelsSchema,
});

const reasoningSchema = z
  .strictObject({
    levels: z.array(z.string().min(1)).min(1),
    default: z.string().optional(),
  })
  .refine(({ levels, default: chosen }) => chosen === undefined || levels.includes(chosen), {
    path: ["default"],
    message: "must be one of the levels",
  });

const dataPolicySchema = z
  .strictObject({
    zdr: z.boolean(),
    data_collection: z.enum(["allow", "deny"]),
    distillable_text: z.boolean(),
  })
  .partial();

const modelFields = z.strictObject({
  /** Catalog ids are matched in lower case. */
  id: z
    .string()
    .regex(/^[^/\s]+\/\S+$/, "must be written as owner/model")
    .transform((id) => id.toLowerCase()),
  upstream_model: z.string().min(1).optional(),
  surface: surfaceSchema.optional(),
  display_name: z.string().min(1).optional(),
  context_length: z.int().positive().optional(),
  max_completion_tokens: z.int().positive().optional(),
  quantization: z.string().optional(),
  pricing: pricingSchema.optional(),
  capabilities: z.array(z.string()).optional(),
  supported_parameters: z.array(z.string()).optional(),
  reasoning: reasoningSchema.optional(),
  /** The policy for this model, where it differs from the provider's. */
  data_policy: dataPolicySchema.optional(),
  /** Whether the model is announced: listed with a marker, and not served yet. */
  coming_soon: z.boolean().optional(),
});

/** The prices of which a surface needs one at least; others need those of text. */
const pricesBySurface: Partial<
  Record<z.infer<typeof surfaceSchema>, readonly (keyof z.infer<typeof pricingSchema>)[]>
> = {
  embeddings: ["prompt", "request"],
  rerank: ["prompt", "request"],
  decisions: ["prompt", "request"],
  images: ["image", "image_output", "completion", "request"],
  transcriptions: ["audio_input_minute", "audio_input", "prompt", "request"],
  speech: ["characters", "audio_output", "audio_output_minute", "completion", "request"],
  realtime: ["audio_input", "audio_input_minute", "prompt"],
};

const modelSchema = modelFields.superRefine(({ surface = "chat", pricing }, context) => {
  if (pricing === undefined) return;
  const wanted = pricesBySurface[surface];
  const missing =
    wanted === undefined
      ? (["prompt", "completion"] as const).filter((part) => pricing[part] === undefined)
      : wanted.some((part) => pricing[part] !== undefined)
        ? []
        : [wanted[0]];
  for (const part of missing) {
    const message =
      wanted === undefined ? "is required" : `is required, or one of ${wanted.join(", ")}`;
    context.addIssue({ code: "custom", path: ["pricing", part ?? ""], message });
  }
});

const passthroughSchema = z.strictObject({
  path: z
    .string()
    .regex(
      /^(?:\/[\w.~!$&'()+,;=:@-]+)*\/?\*?$/,
      "must be a path such as /v1/special, or /v1/files/* for all below it",
    )
    .refine((path) => path.startsWith("/") && !/\/\.\.?(?:\/|$)/.test(path), {
      error: "must begin with a slash and have no dots for a folder",
    }),
  methods: z.array(z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"])).optional(),
  price: z
    .union([z.string(), z.number()])
    .transform(String)
    .pipe(z.string().regex(/^\d{1,6}(?:\.\d{1,9})?$/, 'must be an amount in USD such as "0.002"')),
});

const proxySchema = z.string().superRefine((text, context) => {
  const message = text === "none" ? undefined : proxyProblem(text);
  if (message !== undefined) context.addIssue({ code: "custom", message: `${message}, or none` });
});

const millisecondsText = "expected an integer above 0, in milliseconds";
const milliseconds = z.int(millisecondsText).positive(millisecondsText);

const providerSchema = z.strictObject({
  id: z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9.-]*$/,
      "must be a slug of lower-case letters, digits, dashes and dots, such as llama.cpp",
    ),
  name: z.string().min(1).optional(),
  description: z.string().max(200).optional(),
  base_url: baseUrlSchema.optional(),
  dialect: dialectSchema.optional(),
  api_key: z.string().optional(),
  /** A built-in provider whose deviations from its dialects this server shares. */
  like: z.enum(providerDefinitions.map(({ id }) => id)).optional(),
  /** Single deviations by name, which override those of `like`. */
  deviations: z.array(z.enum(deviationNames)).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  data_policy: dataPolicySchema.optional(),
  timeouts_ms: z
    .strictObject({
      connect: milliseconds,
      first_token: milliseconds,
      idle: milliseconds,
      total: milliseconds,
    })
    .partial()
    .optional(),
  /** Whose API for batches it offers; `none` where a built-in provider's is not to be used. */
  batch_api: z.enum(["openai", "anthropic", "google", "none"]).optional(),
  /** Whose API for files it offers; `none` where contents of files are always sent. */
  files_api: z.enum(["openai", "anthropic", "google", "none"]).optional(),
  /** The proxy for requests to it, in place of the environment's, or `none`. */
  proxy: proxySchema.optional(),
  models: z.array(modelSchema).optional(),
  /** Routes of its own API that keys with the scope `passthrough` may use, USD a request. */
  passthrough: z.array(passthroughSchema).optional(),
  /**
   * The most that its answers may cost callers per day (UTC); beyond it the provider is not used
   * until the next day.
   */
  budget_usd_per_day: z.number().nonnegative().optional(),
});

const isBuiltIn = (id: string): boolean =>
  providerDefinitions.some((definition) => definition.id === id);

/** Returns the address of a built-in provider that no variable sets; undefined for others. */
export function fixedAddressOf(providerId: string): string | undefined {
  const address = providerDefinitions.find(({ id }) => id === providerId)?.baseUrl;
  return typeof address === "string" ? address : undefined;
}

/**
 * A `providers:` entry of switchyard.yaml. An id of a built-in provider overrides it; any other
 * adds one.
 */
export const configuredProviderSchema = providerSchema.superRefine((provider, context) => {
  if (provider.base_url === undefined && !isBuiltIn(provider.id)) {
    const message = `is required: ${provider.id} is not a provider that the gateway knows by itself`;
    context.addIssue({ code: "custom", path: ["base_url"], message });
  }
  provider.deviations?.forEach((name, index, names) => {
    const earlier = contradictedBy(names, index);
    if (earlier === undefined) return;
    context.addIssue({
      code: "custom",
      path: ["deviations", index],
      message: `${name} cannot stand beside ${earlier}: choose one`,
    });
  });
  const seen = new Set<string>();
  provider.models?.forEach(({ id }, index) => {
    if (seen.has(id)) {
      context.addIssue({
        code: "custom",
        path: ["models", index, "id"],
        message: `${id} is listed twice`,
      });
    }
    seen.add(id);
  });
});

/** A provider of the configuration file. */
export type ConfiguredProvider = z.infer<typeof configuredProviderSchema>;
/** A model of a configured provider. */
export type ConfiguredModel = NonNullable<ConfiguredProvider["models"]>[number];
/** The price of a model there, in USD per million tokens. */
export type ConfiguredPricing = NonNullable<ConfiguredModel["pricing"]>;
