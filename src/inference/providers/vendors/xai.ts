import type { ProviderDefinition } from "../provider-definition.ts";

/** xAI. Source: https://x.ai */
export const xai = {
  id: "xai",
  name: "xAI",
  description: "Maker of the Grok models, served from its own platform.",
  website: "https://x.ai",
  baseUrl: "https://api.x.ai/v1",
  credentialVariables: ["XAI_API_KEY"],
  dialects: { chat: "openai-chat", images: "openai-images", realtime: "openai-realtime" },
  // Multi-agent models answer on /v1/responses only.
  deviatingModels: [{ match: /multi-agent/, dialect: "openai-responses" }],
  // docs.x.ai, "Reasoning": penalties are refused by all, `stop` by models that reason (2026-08).
  refuses: ({ reasons, takesEffort }) => ({
    always: [
      "presence_penalty",
      "frequency_penalty",
      ...(reasons ? ["stop"] : []),
      ...(takesEffort ? [] : ["reasoning_effort"]),
    ],
    whileReasoning: [],
  }),
  deviations: {
    maxTokensField: "max_completion_tokens",
    pictures: "aspect-ratio",
    noReasoningSummary: true,
  },
  naming: { maker: "x-ai" },
} satisfies ProviderDefinition;
