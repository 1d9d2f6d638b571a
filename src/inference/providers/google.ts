import type { ProviderDefinition } from "./provider-definition.ts";

/** Google AI Studio. Source: https://ai.google.dev */
export const google = {
  id: "google",
  name: "Google AI Studio",
  description: "Gemini and Gemma models through the Gemini API.",
  website: "https://ai.google.dev",
  // The OpenAI-compatible endpoint; the native generateContent dialect replaces it in the next release.
  baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
  credentialVariables: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  naming: { maker: "google" },
} satisfies ProviderDefinition;
