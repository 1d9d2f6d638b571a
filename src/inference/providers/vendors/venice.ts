import type { ProviderDefinition } from "../provider-definition.ts";

/** Venice AI. Source: https://venice.ai */
export const venice = {
  id: "venice",
  name: "Venice AI",
  description: "Open and partner models with a focus on privacy.",
  website: "https://venice.ai",
  baseUrl: "https://api.venice.ai/api/v1",
  credentialVariables: ["VENICE_API_KEY"],
  dialects: { chat: "openai-chat" },
  deviations: { maxTokensField: "either" },
  naming: {
    strip: [
      "zai-org-",
      "z-ai-",
      "google-",
      "openai-",
      "nvidia-",
      "xiaomi-",
      "aion-labs-",
      "arcee-",
    ],
    decimalPoint: "-",
  },
} satisfies ProviderDefinition;
