import {
  firstSet,
  type Environment,
  type ProviderDefinition,
  type SigningCredential,
} from "../provider-definition.ts";

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
  // An OAuth access token, which lives for an hour and has to be renewed by the operator.
  credentialVariables: ["GOOGLE_VERTEX_ACCESS_TOKEN"],
  signing: vertexSigning,
  dialects: { chat: "google-generate" },
  // Claude is reached through `google-vertex-anthropic`. Other makers' open models are named with
  // their publisher and served by the OpenAI-compatible endpoint, which has no embeddings.
  deviatingModels: [
    { match: /^claude-/, dialect: "none" },
    { match: /embedding/, dialect: "none" },
    { match: /[/]/, dialect: "openai-chat" },
  ],
  // Its field for a search beside functions is answered with 400 (@google/genai 3.3).
  deviations: { searchesAlone: true },
  naming: {},
} satisfies ProviderDefinition;

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
  deviations: {
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

/**
 * Returns the address of a Vertex AI resource in the operator's project; undefined without a
 * project. Source: cloud.google.com/vertex-ai/generative-ai/docs/migrate/openai/overview
 */
function vertexUrl(environment: Environment, resource: string): string | undefined {
  const project = firstSet(environment, ["GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT"]);
  if (project === undefined) return undefined;
  const location =
    firstSet(environment, ["GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION"]) ?? "global";
  const host =
    location === "global" ? "aiplatform.googleapis.com" : `${location}-aiplatform.googleapis.com`;
  return `https://${host}/v1/projects/${project}/locations/${location}/${resource}`;
}

/**
 * Returns the service account that calls Vertex AI: its key itself, or the file that Google's own
 * clients read too.
 */
function vertexSigning(environment: Environment): SigningCredential | undefined {
  const json = firstSet(environment, ["GOOGLE_SERVICE_ACCOUNT_KEY"]);
  const file = firstSet(environment, ["GOOGLE_APPLICATION_CREDENTIALS"]);
  if (json !== undefined) return { type: "google-service-account", key: { json } };
  if (file === undefined) return undefined;
  // With `GOOGLE_APPLICATION_CREDENTIALS_FILE`, the variable has the text of that file.
  const isText = file.trimStart().startsWith("{");
  return { type: "google-service-account", key: isText ? { json: file } : { file } };
}
