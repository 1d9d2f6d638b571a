import type { ProviderDefinition } from "./provider-definition.ts";

/** GitHub Models. Source: https://github.com/marketplace/models */
export const githubModels = {
  id: "github-models",
  name: "GitHub Models",
  description:
    "Models for trying out with a GitHub account: free of charge, with a low request limit.",
  website: "https://github.com/marketplace/models",
  baseUrl: "https://models.github.ai/inference",
  // Not GITHUB_TOKEN: that one opens repositories, and stands in many environments for other reasons.
  credentialVariables: ["GITHUB_MODELS_TOKEN"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "either" },
  naming: {},
} satisfies ProviderDefinition;
