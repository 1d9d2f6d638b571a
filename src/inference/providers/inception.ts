import type { ProviderDefinition } from "./provider-definition.ts";

/** Inception. Source: https://www.inceptionlabs.ai */
export const inception = {
  id: "inception",
  name: "Inception",
  description: "Maker of the Mercury diffusion models, served from its own platform.",
  website: "https://www.inceptionlabs.ai",
  baseUrl: "https://api.inceptionlabs.ai/v1",
  credentialVariables: ["INCEPTION_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { maker: "inception" },
} satisfies ProviderDefinition;
