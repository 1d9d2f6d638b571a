import type { ProviderDefinition } from "./provider-definition.ts";

/** SiliconFlow. Source: https://www.siliconflow.com */
export const siliconflow = {
  id: "siliconflow",
  name: "SiliconFlow",
  description: "Open models, serverless, from Asia.",
  website: "https://www.siliconflow.com",
  baseUrl: "https://api.siliconflow.com/v1",
  credentialVariables: ["SILICONFLOW_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
