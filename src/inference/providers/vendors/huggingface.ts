import type { ProviderDefinition } from "../provider-definition.ts";

/** Hugging Face. Source: https://huggingface.co/docs/inference-providers */
export const huggingface = {
  id: "huggingface",
  name: "Hugging Face",
  description: "A router in front of providers of open models, billed through one account.",
  website: "https://huggingface.co/docs/inference-providers",
  baseUrl: "https://router.huggingface.co/v1",
  credentialVariables: ["HF_TOKEN"],
  dialects: { chat: "openai-chat" },
  // The router serves chat completions alone.
  deviatingModels: [{ match: /embed/i, dialect: "none" }],
  deviations: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
