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
  // Thinking models want their thoughts back within a turn of tools (platform.moonshot.ai, "Thinking models").
  quirks: { maxTokensField: "max_tokens", reasoningReplay: "reasoning_content" },
  naming: { maker: "moonshotai" },
} satisfies ProviderDefinition;
