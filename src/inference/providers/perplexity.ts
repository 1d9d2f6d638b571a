import type { ProviderDefinition } from "./provider-definition.ts";

/** Perplexity. Source: https://www.perplexity.ai */
export const perplexity = {
  id: "perplexity",
  name: "Perplexity",
  description: "Maker of the Sonar models, which answer from a web search.",
  website: "https://www.perplexity.ai",
  baseUrl: "https://api.perplexity.ai",
  credentialVariables: ["PERPLEXITY_API_KEY"],
  dialects: { chat: "openai-chat" },
  // Every chunk carries the usage so far, unasked.
  quirks: { maxTokensField: "max_tokens", noStreamOptions: true },
  naming: { maker: "perplexity" },
} satisfies ProviderDefinition;
