import type { ProviderDefinition } from "./provider-definition.ts";

/** Groq. Source: https://groq.com */
export const groq = {
  id: "groq",
  name: "Groq",
  description: "Open models on hardware built for low latency.",
  website: "https://groq.com",
  baseUrl: "https://api.groq.com/openai/v1",
  credentialVariables: ["GROQ_API_KEY"],
  dialects: { chat: "openai-chat" },
  naming: {},
} satisfies ProviderDefinition;
