import type { ProviderDefinition } from "../provider-definition.ts";

/** Google AI Studio. Source: https://ai.google.dev */
export const google = {
  id: "google",
  name: "Google AI Studio",
  description: "Gemini and Gemma models through the Gemini API.",
  website: "https://ai.google.dev",
  baseUrl: "https://generativelanguage.googleapis.com/v1beta",
  credentialVariables: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
  credentialHeader: { name: "x-goog-api-key", prefix: "" },
  dialects: {
    chat: "google-generate",
    embeddings: "google-embed",
    images: "google-images",
    transcriptions: "google-audio",
    speech: "google-audio",
    realtime: "google-live",
  },
  batches: "google",
  filesApi: "google",
  naming: { maker: "google" },
} satisfies ProviderDefinition;
