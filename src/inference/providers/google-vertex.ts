import type { ProviderDefinition } from "./provider-definition.ts";
import { vertexUrl } from "./vertex-url.ts";

/** Google Vertex AI. Source: https://cloud.google.com/vertex-ai */
export const googleVertex = {
  id: "google-vertex",
  name: "Google Vertex AI",
  description: "Gemini and open models on Google Cloud, billed to a Google Cloud project.",
  website: "https://cloud.google.com/vertex-ai",
  baseUrl: (environment) => vertexUrl(environment, "endpoints/openapi"),
  // An OAuth access token, which lives for an hour: whoever sets it renews it.
  credentialVariables: ["GOOGLE_VERTEX_ACCESS_TOKEN"],
  dialects: { chat: "openai-chat" },
  // Claude is reached through `google-vertex-anthropic`; the openapi endpoint has no embeddings.
  deviatingModels: [
    { match: /^claude-/, dialect: "none" },
    { match: /embedding/, dialect: "none" },
  ],
  // The openapi endpoint wants `google/gemini-...` where Gemini's own endpoints take bare names.
  naming: { sendWithPrefix: "google/" },
} satisfies ProviderDefinition;
