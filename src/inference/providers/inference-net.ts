import type { ProviderDefinition } from "./provider-definition.ts";

/** Inference.net. Source: https://inference.net */
export const inferenceNet = {
  id: "inference-net",
  name: "Inference.net",
  description: "Small open models, serverless and for batches.",
  website: "https://inference.net",
  baseUrl: "https://api.inference.net/v1",
  credentialVariables: ["INFERENCE_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
  factsId: "inference",
} satisfies ProviderDefinition;
