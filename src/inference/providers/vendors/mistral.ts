import type { ProviderDefinition } from "../provider-definition.ts";

/** Mistral. Source: https://mistral.ai */
export const mistral = {
  id: "mistral",
  name: "Mistral",
  description:
    "Maker of the Mistral, Codestral, Devstral and Magistral models, served from the EU.",
  website: "https://mistral.ai",
  baseUrl: "https://api.mistral.ai/v1",
  credentialVariables: ["MISTRAL_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Unknown members are refused with 422 `extra_forbidden`; usage comes on the last chunk unasked.
  deviations: {
    maxTokensField: "max_tokens",
    noStreamOptions: true,
    reasoningReplay: "content",
    // Answered with 400 (codes 3230 and 3280).
    callIds: "nine-characters",
    answersResults: true,
    refusesEmptyTurns: true,
    // Code 3230 (huggingface/smolagents#757). A `prefix` is said again in the answer, so that a client
    // which begins an answer would read its own words twice.
    refusesBegunAnswers: true,
    refusesDeveloper: true,
    systemOnlyFirst: true,
    unsupportedMessageFields: ["name", "reasoning_content", "reasoning", "reasoning_details"],
    unsupportedFields: [
      "seed",
      "logprobs",
      "top_logprobs",
      "logit_bias",
      "stream_options",
      "thinking",
      "top_k",
      "min_p",
      "top_a",
      "repetition_penalty",
      "user",
      "verbosity",
      "modalities",
      "audio",
      "web_search_options",
      "moderation",
      "service_tier",
      "store",
      "prompt_cache_key",
      "prompt_cache_retention",
      "prompt_cache_options",
      "safety_identifier",
    ],
    // Code between a prompt and a suffix (docs.mistral.ai, "FIM completion").
    ownCompletions: {
      form: "mistral",
      path: "/fim/completions",
      models: /^codestral-(?!embed)/,
      oneText: true,
      fields: [
        ...["suffix", "max_tokens", "min_tokens", "stop", "stream"],
        ...["temperature", "top_p", "random_seed", "metadata"],
      ],
    },
  },
  naming: { maker: "mistralai" },
} satisfies ProviderDefinition;
