import type { ProviderDefinition } from "./provider-definition.ts";

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
  quirks: { maxTokensField: "max_tokens", noStreamOptions: true },
  naming: { maker: "mistralai" },
} satisfies ProviderDefinition;
