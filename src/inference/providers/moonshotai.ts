import type { ProviderDefinition } from "./provider-definition.ts";

/** Moonshot AI. Source: https://platform.moonshot.ai */
export const moonshotai = {
  id: "moonshotai",
  name: "Moonshot AI",
  description: "Maker of the Kimi models, served from its own platform.",
  website: "https://platform.moonshot.ai",
  baseUrl: "https://api.moonshot.ai/v1",
  credentialVariables: ["MOONSHOT_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { maker: "moonshotai" },
} satisfies ProviderDefinition;
