import type { ProviderDefinition } from "./provider-definition.ts";

/** Morph. Source: https://morphllm.com */
export const morph = {
  id: "morph",
  name: "Morph",
  description: "Models that apply code edits quickly.",
  website: "https://morphllm.com",
  baseUrl: "https://api.morphllm.com/v1",
  credentialVariables: ["MORPH_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { maker: "morph" },
} satisfies ProviderDefinition;
