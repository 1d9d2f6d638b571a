import type { ProviderDefinition } from "./provider-definition.ts";

/** Ollama Cloud. Source: https://ollama.com/cloud */
export const ollamaCloud = {
  id: "ollama-cloud",
  name: "Ollama Cloud",
  description: "Open models too large for one's own machine, by subscription.",
  website: "https://ollama.com/cloud",
  baseUrl: "https://ollama.com/v1",
  credentialVariables: ["OLLAMA_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
