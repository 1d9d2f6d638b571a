import type { ProviderDefinition } from "./provider-definition.ts";

/** Anthropic. Source: https://www.anthropic.com */
export const anthropic = {
  id: "anthropic",
  name: "Anthropic",
  description: "Maker of the Claude models, served from its own platform.",
  website: "https://www.anthropic.com",
  // The OpenAI-compatible endpoint, which leaves out prompt caching and strict schemas. The native
  // Messages dialect replaces it in the next release.
  baseUrl: "https://api.anthropic.com/v1",
  credentialVariables: ["ANTHROPIC_API_KEY"],
  dialects: { chat: "openai-chat" },
  // Kept for up to 30 days, unless a contract says otherwise.
  dataPolicy: { zdr: false },
  naming: { maker: "anthropic" },
} satisfies ProviderDefinition;
