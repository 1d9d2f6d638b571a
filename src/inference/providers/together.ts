import type { ProviderDefinition } from "./provider-definition.ts";

/** Together AI. Source: https://www.together.ai */
export const together = {
  id: "together",
  name: "Together AI",
  description: "Open models, serverless, many of them in FP8.",
  website: "https://www.together.ai",
  baseUrl: "https://api.together.xyz/v1",
  credentialVariables: ["TOGETHER_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
  factsId: "togetherai",
} satisfies ProviderDefinition;
