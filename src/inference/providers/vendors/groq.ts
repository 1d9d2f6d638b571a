import type { ProviderDefinition } from "../provider-definition.ts";

/** Groq. Source: https://groq.com */
export const groq = {
  id: "groq",
  name: "Groq",
  description: "Open models on hardware built for low latency.",
  website: "https://groq.com",
  baseUrl: "https://api.groq.com/openai/v1",
  credentialVariables: ["GROQ_API_KEY"],
  dialects: { chat: "openai-chat", transcriptions: "openai-audio", speech: "openai-audio" },
  // console.groq.com/docs/reasoning: an effort is refused by models that do not reason.
  refuses: ({ takesEffort }) => ({
    always: takesEffort ? [] : ["reasoning_effort"],
    whileReasoning: [],
  }),
  // Answered with 400 (console.groq.com/docs/openai, "Currently unsupported OpenAI features").
  deviations: {
    maxTokensField: "either",
    unsupportedFields: ["logprobs", "top_logprobs", "logit_bias", "top_k", "min_p", "top_a"],
    unsupportedMessageFields: ["reasoning_content", "reasoning_details"],
    // vercel/ai#16540 (2026-07).
    formatWithoutFunctions: true,
  },
  naming: {},
} satisfies ProviderDefinition;
