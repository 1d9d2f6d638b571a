import { firstSet, type ProviderDefinition } from "./provider-definition.ts";

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
  // The chat templates of many open models, such as Qwen's, refuse a system message that is not the first.
  quirks: { maxTokensField: "either", systemOnlyFirst: true },
  naming: {},
  local: true,
} satisfies ProviderDefinition;
