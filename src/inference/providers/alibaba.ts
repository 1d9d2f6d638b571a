import type { ProviderDefinition } from "./provider-definition.ts";

/** Alibaba Cloud. Source: https://www.alibabacloud.com/product/modelstudio */
export const alibaba = {
  id: "alibaba",
  name: "Alibaba Cloud",
  description: "Maker of the Qwen models, served by Model Studio outside mainland China.",
  website: "https://www.alibabacloud.com/product/modelstudio",
  baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
  credentialVariables: ["DASHSCOPE_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { maker: "qwen" },
} satisfies ProviderDefinition;
