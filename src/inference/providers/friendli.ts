import type { ProviderDefinition } from "./provider-definition.ts";

/** Friendli. Source: https://friendli.ai */
export const friendli = {
  id: "friendli",
  name: "Friendli",
  description: "Open models on an inference engine of its own.",
  website: "https://friendli.ai",
  baseUrl: "https://api.friendli.ai/serverless/v1",
  credentialVariables: ["FRIENDLI_TOKEN"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
