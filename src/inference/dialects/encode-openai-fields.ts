import type { JsonObject } from "../canonical/json.ts";
import type { PromptCaching, Sampling } from "../canonical/request.ts";

/** How the next token is drawn, beside OpenAI's two: what servers take that speak chat, and Responses has no words for. */
export const furtherSampling = (sampling: Sampling): JsonObject => ({
  top_k: sampling.topK,
  min_p: sampling.minP,
  top_a: sampling.topA,
  frequency_penalty: sampling.frequencyPenalty,
  presence_penalty: sampling.presencePenalty,
  repetition_penalty: sampling.repetitionPenalty,
  seed: sampling.seed,
  logit_bias: sampling.logitBias,
});

/** OpenAI's fields for caching the prompt as a whole. */
export const cachingFields = ({ key, retention, options }: PromptCaching): JsonObject => ({
  prompt_cache_key: key,
  prompt_cache_retention: retention,
  prompt_cache_options: options,
});
