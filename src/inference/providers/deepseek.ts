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
  // Thoughts beside calls must come back, or the answer is 400 (api-docs.deepseek.com/guides/thinking_mode).
  quirks: { maxTokensField: "max_tokens", reasoningReplay: "reasoning_content" },
  naming: { maker: "deepseek" },
} satisfies ProviderDefinition;
