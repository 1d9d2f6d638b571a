import type { ProviderDefinition } from "./provider-definition.ts";

/** Vercel AI Gateway. Source: https://vercel.com/ai-gateway */
export const vercel = {
  id: "vercel",
  name: "Vercel AI Gateway",
  description: "A gateway in front of many other providers.",
  website: "https://vercel.com/ai-gateway",
  baseUrl: "https://ai-gateway.vercel.sh/v1",
  credentialVariables: ["AI_GATEWAY_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  naming: {},
} satisfies ProviderDefinition;
