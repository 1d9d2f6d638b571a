import type { ProviderDefinition } from "./provider-definition.ts";

/** OpenRouter. Source: https://openrouter.ai */
export const openrouter = {
  id: "openrouter",
  name: "OpenRouter",
  description: "A marketplace in front of many other providers.",
  website: "https://openrouter.ai",
  baseUrl: "https://openrouter.ai/api/v1",
  credentialVariables: ["OPENROUTER_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Floating aliases and routers: what they cost depends on what they pick.
  deviatingModels: [
    { match: /^~|^openrouter\//, dialect: "none" },
  ],
  naming: {},
} satisfies ProviderDefinition;
