import type { ProviderDefinition } from "../provider-definition.ts";

/** Cerebras. Source: https://www.cerebras.ai */
export const cerebras = {
  id: "cerebras",
  name: "Cerebras",
  description: "Open models on wafer-scale hardware, at thousands of tokens per second.",
  website: "https://www.cerebras.ai",
  baseUrl: "https://api.cerebras.ai/v1",
  credentialVariables: ["CEREBRAS_API_KEY"],
  dialects: { chat: "openai-chat" },
  // Answered with 400 (inference-docs.cerebras.ai/resources/openai).
  deviations: {
    maxTokensField: "max_completion_tokens",
    unsupportedFields: ["frequency_penalty", "presence_penalty", "logit_bias"],
  },
  naming: { strip: ["zai-"] },
} satisfies ProviderDefinition;
