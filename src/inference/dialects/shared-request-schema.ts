import { z } from "zod";

/** An object that is kept as it is. */
export const open = z.record(z.string(), z.unknown());

/** What every client dialect lets a request ask of the gateway itself, but for `trace`, which chat describes. */
export const gatewayShape = {
  models: z.array(z.string()).nullish().describe("Fallback models."),
  provider: open.nullish().describe("Routing preferences."),
  session_id: z
    .string()
    .max(256)
    .nullish()
    .describe("Requests of one session stay with one provider."),
  trace: open.nullish(),
  require_params: z.array(z.string()).nullish(),
  min_context: z.number().nullish(),
};

/** Names of the fields that speak to the gateway; removed from every body that goes upstream. */
export const gatewayFieldNames = [
  "models",
  "provider",
  "session_id",
  "trace",
  "require_params",
  "min_context",
] as const;

const penalty = z.number().min(-2).max(2).nullish();

/** How the next token is drawn, as chat and Responses spell it. */
export const samplingShape = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().nullish(),
  min_p: z.number().nullish(),
  top_a: z.number().nullish(),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: z.number().nullish(),
  seed: z.int().nullish(),
};

/** Most likely tokens that may be asked for beside each. */
export const topLogprobs = z.int().min(0).max(20).nullish();

/** Whom a request is for, and how its provider is to treat it, as chat and Responses spell it. */
export const identityShape = {
  metadata: open.nullish(),
  user: z.string().nullish().describe("The end user's id."),
  safety_identifier: z.string().nullish(),
  service_tier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  prompt_cache_options: open.nullish(),
  moderation: open.nullish(),
};

/** Thinking as OpenRouter spells it, which chat and Responses both take. */
export const reasoningShape = {
  effort: z.string().nullish(),
  max_tokens: z.int().nullish(),
  exclude: z.boolean().nullish(),
  enabled: z.boolean().nullish().describe("false turns thinking off."),
  summary: z.string().nullish(),
};
