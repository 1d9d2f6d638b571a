import type { ProviderDefinition } from "./provider-definition.ts";
import { vertexUrl } from "./vertex-url.ts";

/** Claude on Google Vertex AI. Source: https://cloud.google.com/vertex-ai */
export const googleVertexAnthropic = {
  id: "google-vertex-anthropic",
  name: "Google Vertex AI (Anthropic)",
  description: "Claude models on Google Cloud, billed to a Google Cloud project.",
  website: "https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude",
  baseUrl: (environment) => vertexUrl(environment, "publishers/anthropic/models"),
  credentialVariables: ["GOOGLE_VERTEX_ACCESS_TOKEN"],
  // Served in the Messages dialect alone, which this release cannot send yet.
  dialects: { chat: "anthropic-messages" },
  naming: { maker: "anthropic" },
} satisfies ProviderDefinition;
