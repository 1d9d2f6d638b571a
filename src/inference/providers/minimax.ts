import type { ProviderDefinition } from "./provider-definition.ts";

/** MiniMax. Source: https://www.minimax.io */
export const minimax = {
  id: "minimax",
  name: "MiniMax",
  description: "Maker of the MiniMax models, served from its own platform.",
  website: "https://www.minimax.io",
  baseUrl: "https://api.minimax.io/v1",
  credentialVariables: ["MINIMAX_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "either" },
  naming: { maker: "minimax" },
} satisfies ProviderDefinition;
