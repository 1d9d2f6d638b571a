import type { ProviderDefinition } from "../provider-definition.ts";

/** OpenRouter. Source: https://openrouter.ai */
export const openrouter = {
  id: "openrouter",
  name: "OpenRouter",
  description: "A marketplace in front of many other providers.",
  website: "https://openrouter.ai",
  baseUrl: "https://openrouter.ai/api/v1",
  surfaceBaseUrls: { decisions: "https://openrouter.ai/api/alpha" },
  credentialVariables: ["OPENROUTER_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings", decisions: "decisions" },
  // Floating aliases and routers, whose cost depends on the model that they pick.
  deviatingModels: [{ match: /^~|^openrouter\//, dialect: "none" }],
  // OpenRouter translates all three for the provider that serves (openrouter.ai/docs, "Reasoning
  // tokens", "Prompt caching").
  deviations: {
    maxTokensField: "either",
    reasoningObject: true,
    reasoningReplay: "reasoning_details",
    cacheMarkers: "cache_control",
    userLengthMax: 128,
    answersResults: "mistral",
    // OpenRouter asks OpenAI in Responses (musistudio/claude-code-router#994, 2025-11).
    leastCap: { models: /^openai\/(?:gpt-[4-9]|o\d)/, tokens: 16 },
    ownCompletions: { form: "openai", oneText: true },
  },
  naming: {},
} satisfies ProviderDefinition;
