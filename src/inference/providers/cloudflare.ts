import { firstSet, type ProviderDefinition } from "./provider-definition.ts";

/** Cloudflare Workers AI. Source: https://developers.cloudflare.com/workers-ai */
export const cloudflare = {
  id: "cloudflare",
  name: "Cloudflare Workers AI",
  description: "Open models on Cloudflare's network, billed to an account there.",
  website: "https://developers.cloudflare.com/workers-ai",
  baseUrl: (environment) => {
    const account = firstSet(environment, ["CLOUDFLARE_ACCOUNT_ID"]);
    return account === undefined
      ? undefined
      : `https://api.cloudflare.com/client/v4/accounts/${account}/ai/v1`;
  },
  credentialVariables: ["CLOUDFLARE_API_KEY", "CLOUDFLARE_API_TOKEN"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { strip: ["@cf/"] },
  factsId: "cloudflare-workers-ai",
} satisfies ProviderDefinition;
