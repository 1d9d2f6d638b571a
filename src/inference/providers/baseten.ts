import type { ProviderDefinition } from "./provider-definition.ts";

/** Baseten. Source: https://www.baseten.co */
export const baseten = {
  id: "baseten",
  name: "Baseten",
  description: "Open models behind a serverless API, and deployments of one's own.",
  website: "https://www.baseten.co",
  baseUrl: "https://inference.baseten.co/v1",
  credentialVariables: ["BASETEN_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
