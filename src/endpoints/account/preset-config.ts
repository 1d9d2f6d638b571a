import { z } from "zod";
import type { PresetConfig } from "../../account/presets/preset.ts";
import { presetReference } from "../../account/presets/preset-reference.ts";
import { providerPreferencesSchema } from "../../inference/routing/provider-preferences.ts";

const fields = z.looseObject({});
const tokens = z.int().positive();
const penalty = z.number().min(-2).max(2);
const names = z.array(z.string().min(1));
const modelId = z
  .string()
  .min(1)
  .max(256)
  .refine(
    (id) => presetReference(id) === undefined,
    "must be a model: a preset does not name another preset",
  );

/**
 * PresetConfig of the contract, by type and range. Fields that it does not know are left out in silence, as
 * OpenRouter does with presets that are made from whole requests (its reference, "Create a preset", 2026-04).
 */
export const presetConfigSchema = z.object({
  model: modelId.nullish().describe("Model of requests that name the preset."),
  models: z.array(modelId).nullish().describe("Fallback models, in order."),
  system: z
    .string()
    .nullish()
    .describe("Put before the conversation of requests that have no system message."),
  temperature: z.number().min(0).max(2).nullish(),
  max_tokens: tokens.nullish(),
  max_completion_tokens: tokens.nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().nonnegative().nullish(),
  frequency_penalty: penalty.nullish(),
  presence_penalty: penalty.nullish(),
  repetition_penalty: z.number().min(0).max(2).nullish(),
  stop: z
    .union(
      [z.string(), z.array(z.string()).max(4)],
      "must be a string or an array of at most 4 strings",
    )
    .nullish(),
  seed: z.int().nullish(),
  response_format: fields.extend({ type: z.string() }).nullish(),
  tools: z
    .array(fields)
    .nullish()
    .describe("As chat spells them; other dialects get them translated."),
  tool_choice: z.union([z.string(), fields], "must be a string or an object").nullish(),
  provider: providerPreferencesSchema.nullish().describe("Routing preferences."),
  reasoning: z
    .object({
      effort: z.string().min(1).optional(),
      max_tokens: tokens.optional(),
      exclude: z.boolean().optional(),
      enabled: z.boolean().optional(),
    })
    .nullish(),
  stream_options: fields.extend({ include_usage: z.boolean().optional() }).nullish(),
  require_params: names.nullish().describe("Older place of provider.require_params."),
  min_context: z.number().nonnegative().nullish(),
});

/** A configuration as it came in: null where a field is to be taken out. */
export type PresetConfigInput = z.infer<typeof presetConfigSchema>;

/** The configuration with those fields alone that are set. */
export const presetConfigOf = (input: PresetConfigInput): PresetConfig =>
  Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== null && value !== undefined),
  ) as PresetConfig;
