import { firstSet, type ProviderDefinition } from "./provider-definition.ts";

/** LM Studio. Source: https://lmstudio.ai */
export const lmStudio = {
  id: "lm-studio",
  name: "LM Studio",
  description: "Open models on the operator's own machine.",
  website: "https://lmstudio.ai",
  // With the path, such as `http://127.0.0.1:1234/v1`.
  baseUrl: (environment) => firstSet(environment, ["LMSTUDIO_BASE_URL"])?.replace(/\/+$/, ""),
  credentialVariables: ["LMSTUDIO_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Runs on the operator's own machines.
  dataPolicy: { zdr: true, dataCollection: "deny" },
  // The chat templates of many open models, such as Qwen's, refuse a system message that is not the first.
  quirks: { maxTokensField: "max_tokens", systemOnlyFirst: true },
  naming: {},
  factsId: "lmstudio",
  local: true,
} satisfies ProviderDefinition;
