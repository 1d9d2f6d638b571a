import type { ProviderDefinition } from "./provider-definition.ts";

/** DeepSeek. Source: https://platform.deepseek.com */
export const deepseek = {
  id: "deepseek",
  name: "DeepSeek",
  description: "Maker of the DeepSeek models, served from its own platform in China.",
  website: "https://platform.deepseek.com",
  baseUrl: "https://api.deepseek.com",
  credentialVariables: ["DEEPSEEK_API_KEY"],
  dialects: { chat: "openai-chat" },
  // The privacy policy lets inputs be stored and used to improve the service.
  dataPolicy: { zdr: false, dataCollection: "allow" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { maker: "deepseek" },
} satisfies ProviderDefinition;
