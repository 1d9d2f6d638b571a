import type { ProviderDefinition } from "../provider-definition.ts";

/** Groq. Source: https://groq.com */
export const groq = {
  id: "groq",
  name: "Groq",
  description: "Open models on hardware built for low latency.",
  website: "https://groq.com",
  baseUrl: "https://api.groq.com/openai/v1",
  credentialVariables: ["GROQ_API_KEY"],
  dialects: { chat: "openai-chat" },
  // Answered with 400 (console.groq.com/docs/openai, "Currently unsupported OpenAI features").
  deviations: {
    maxTokensField: "either",
    unsupportedFields: ["logprobs", "top_logprobs", "logit_bias"],
  },
  naming: {},
} satisfies ProviderDefinition;
