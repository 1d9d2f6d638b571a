import type { ProviderDefinition } from "./provider-definition.ts";

/** Chutes. Source: https://chutes.ai */
export const chutes = {
  id: "chutes",
  name: "Chutes",
  description: "Open models on decentralised hardware, here inside trusted execution environments.",
  website: "https://chutes.ai",
  baseUrl: "https://llm.chutes.ai/v1",
  credentialVariables: ["CHUTES_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
