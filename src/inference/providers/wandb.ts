import type { ProviderDefinition } from "./provider-definition.ts";

/** Weights & Biases. Source: https://wandb.ai/site/inference */
export const wandb = {
  id: "wandb",
  name: "Weights & Biases",
  description: "Open models on CoreWeave hardware.",
  website: "https://wandb.ai/site/inference",
  baseUrl: "https://api.inference.wandb.ai/v1",
  credentialVariables: ["WANDB_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
