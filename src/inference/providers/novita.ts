import type { ProviderDefinition } from "./provider-definition.ts";

/** Novita AI. Source: https://novita.ai */
export const novita = {
  id: "novita",
  name: "Novita AI",
  description: "Open models, serverless.",
  website: "https://novita.ai",
  baseUrl: "https://api.novita.ai/openai",
  credentialVariables: ["NOVITA_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
  factsId: "novita-ai",
} satisfies ProviderDefinition;
