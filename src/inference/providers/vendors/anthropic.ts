import type { ProviderDefinition } from "../provider-definition.ts";

/** Anthropic. Source: https://platform.claude.com/docs */
export const anthropic = {
  id: "anthropic",
  name: "Anthropic",
  description: "Maker of the Claude models, served from its own platform.",
  website: "https://www.anthropic.com",
  baseUrl: "https://api.anthropic.com/v1",
  credentialVariables: ["ANTHROPIC_API_KEY"],
  // Every version of the API accepts this header; the newest accepts a bearer token too.
  credentialHeader: { name: "x-api-key", prefix: "" },
  dialects: { chat: "anthropic-messages" },
  deviations: { messageThreads: true },
  // Kept for up to 30 days, unless a contract says otherwise.
  dataPolicy: { zdr: false },
  batches: "anthropic",
  filesApi: "anthropic",
  naming: { maker: "anthropic" },
} satisfies ProviderDefinition;
