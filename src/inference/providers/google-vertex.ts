import type { ProviderDefinition } from "./provider-definition.ts";
import { vertexSigning, vertexUrl } from "./vertex-url.ts";

/** Google Vertex AI. Source: https://cloud.google.com/vertex-ai */
export const googleVertex = {
  id: "google-vertex",
  name: "Google Vertex AI",
  description: "Gemini and open models on Google Cloud, billed to a Google Cloud project.",
  website: "https://cloud.google.com/vertex-ai",
  baseUrl: (environment) => vertexUrl(environment, "publishers/google"),
  dialectBaseUrls: (environment) => {
    const openapi = vertexUrl(environment, "endpoints/openapi");
    return openapi === undefined ? {} : { "openai-chat": openapi };
  },
  // An OAuth access token, which lives for an hour: whoever sets it renews it.
  credentialVariables: ["GOOGLE_VERTEX_ACCESS_TOKEN"],
  signing: vertexSigning,
  dialects: { chat: "google-generate" },
  // Claude is reached through `google-vertex-anthropic`. Other makers' open models bear their publisher's
  // name and are served by the OpenAI-compatible endpoint, which has no embeddings.
  deviatingModels: [
    { match: /^claude-/, dialect: "none" },
    { match: /embedding/, dialect: "none" },
    { match: /[/]/, dialect: "openai-chat" },
  ],
  naming: {},
} satisfies ProviderDefinition;
