import type { ProviderDefinition } from "./provider-definition.ts";

/** Upstage. Source: https://www.upstage.ai */
export const upstage = {
  id: "upstage",
  name: "Upstage",
  description: "Maker of the Solar models, served from its own platform.",
  website: "https://www.upstage.ai",
  baseUrl: "https://api.upstage.ai/v1",
  credentialVariables: ["UPSTAGE_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { maker: "upstage" },
} satisfies ProviderDefinition;
