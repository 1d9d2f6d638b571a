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
  // The chat templates of many open models, such as Qwen's, refuse a system message that is not the
  // first.
  quirks: { maxTokensField: "max_tokens", systemOnlyFirst: true },
  naming: {},
  factsId: "lmstudio",
  local: true,
} satisfies ProviderDefinition;

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

/** vLLM. Source: https://docs.vllm.ai */
export const vllm = {
  id: "vllm",
  name: "vLLM",
  description: "A vLLM server of the operator's own.",
  website: "https://docs.vllm.ai",
  // With the path, such as `http://127.0.0.1:8000/v1`.
  baseUrl: (environment) => firstSet(environment, ["VLLM_BASE_URL"])?.replace(/\/+$/, ""),
  credentialVariables: ["VLLM_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Runs on the operator's own machines.
  dataPolicy: { zdr: true, dataCollection: "deny" },
  // The chat templates of many open models, such as Qwen's, refuse a system message that is not the
  // first.
  quirks: { maxTokensField: "either", systemOnlyFirst: true },
  naming: {},
  local: true,
} satisfies ProviderDefinition;
