import { firstSet, type ProviderDefinition } from "./provider-definition.ts";

/** Ollama. Source: https://ollama.com */
export const ollama = {
  id: "ollama",
  name: "Ollama",
  description: "Open models on the operator's own machine.",
  website: "https://ollama.com",
  // With the path, such as `http://127.0.0.1:11434/v1`.
  baseUrl: (environment) => firstSet(environment, ["OLLAMA_BASE_URL"])?.replace(/\/+$/, ""),
  // Not OLLAMA_API_KEY, which belongs to the cloud service.
  credentialVariables: ["OLLAMA_LOCAL_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Runs on the operator's own machines.
  dataPolicy: { zdr: true, dataCollection: "deny" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
  local: true,
} satisfies ProviderDefinition;
