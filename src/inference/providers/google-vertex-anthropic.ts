import type { ProviderDefinition } from "./provider-definition.ts";
import { vertexSigning, vertexUrl } from "./vertex-url.ts";

/** Claude on Google Vertex AI. Source: https://cloud.google.com/vertex-ai */
export const googleVertexAnthropic = {
  id: "google-vertex-anthropic",
  name: "Google Vertex AI (Anthropic)",
  description: "Claude models on Google Cloud, billed to a Google Cloud project.",
  website: "https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude",
  baseUrl: (environment) => vertexUrl(environment, "publishers/anthropic/models"),
  credentialVariables: ["GOOGLE_VERTEX_ACCESS_TOKEN"],
  signing: vertexSigning,
  dialects: { chat: "anthropic-messages" },
  quirks: {
    messagesPath: "raw-predict",
    bodyVersion: "vertex-2023-10-16",
    // Others are answered with 400 "Unexpected value(s) for the `anthropic-beta` header".
    knownBetas: [
      "computer-use-2025-01-24",
      "context-1m-2025-08-07",
      "context-management-2025-06-27",
      "effort-2025-11-24",
      "interleaved-thinking-2025-05-14",
      "tool-search-tool-2025-10-19",
      "web-search-2025-03-05",
    ],
  },
  naming: { maker: "anthropic" },
} satisfies ProviderDefinition;
