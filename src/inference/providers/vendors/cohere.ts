import type { ProviderDefinition } from "../provider-definition.ts";

/** Cohere. Source: https://cohere.com */
export const cohere = {
  id: "cohere",
  name: "Cohere",
  description: "Maker of the Command models and of Embed and Rerank.",
  website: "https://cohere.com",
  // The compatibility API; surfaces other than chat have more options in Cohere's own.
  baseUrl: "https://api.cohere.ai/compatibility/v1",
  surfaceBaseUrls: { embeddings: "https://api.cohere.com/v2", rerank: "https://api.cohere.com/v2" },
  credentialVariables: ["COHERE_API_KEY", "CO_API_KEY"],
  dialects: {
    chat: "openai-chat",
    embeddings: "cohere-embed",
    rerank: "cohere-rerank",
  },
  // The compatibility API refuses `stream_options`.
  deviations: {
    maxTokensField: "max_tokens",
    noStreamOptions: true,
    unsupportedToolFields: ["strict"],
    unnamedToolChoice: true,
    temperatureMax: 1,
    unsupportedFields: [
      "store",
      "metadata",
      "logit_bias",
      "top_logprobs",
      "modalities",
      "prediction",
      "service_tier",
      "parallel_tool_calls",
      "top_k",
    ],
  },
  naming: { maker: "cohere" },
} satisfies ProviderDefinition;
