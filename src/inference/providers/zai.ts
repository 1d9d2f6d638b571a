import type { ProviderDefinition } from "./provider-definition.ts";

/** Z.AI. Source: https://z.ai */
export const zai = {
  id: "zai",
  name: "Z.AI",
  description: "Maker of the GLM models, served from its own platform.",
  website: "https://z.ai",
  baseUrl: "https://api.z.ai/api/paas/v4",
  credentialVariables: ["ZAI_API_KEY", "ZHIPU_API_KEY"],
  dialects: { chat: "openai-chat" },
  // Interleaved thinking wants the thoughts back unchanged (docs.z.ai/guides/capabilities/thinking-mode).
  quirks: { maxTokensField: "max_tokens", reasoningReplay: "reasoning_content" },
  naming: { maker: "z-ai" },
} satisfies ProviderDefinition;
