import type { ProviderDefinition } from "./provider-definition.ts";

/** Fireworks AI. Source: https://fireworks.ai */
export const fireworks = {
  id: "fireworks",
  name: "Fireworks AI",
  description: "Open models, serverless and fast.",
  website: "https://fireworks.ai",
  baseUrl: "https://api.fireworks.ai/inference/v1",
  credentialVariables: ["FIREWORKS_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Prompts and answers of open models are not stored unless the account opts in.
  dataPolicy: { zdr: true, dataCollection: "deny" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {
    strip: ["accounts/fireworks/models/", "accounts/fireworks/routers/"],
    decimalPoint: "p",
  },
  factsId: "fireworks-ai",
} satisfies ProviderDefinition;
