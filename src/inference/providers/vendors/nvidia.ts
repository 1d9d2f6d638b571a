import type { ProviderDefinition } from "../provider-definition.ts";

/** NVIDIA. Source: https://build.nvidia.com */
export const nvidia = {
  id: "nvidia",
  name: "NVIDIA",
  description: "Hosted trial endpoints of NVIDIA NIM: free of charge, with a low request limit.",
  website: "https://build.nvidia.com",
  baseUrl: "https://integrate.api.nvidia.com/v1",
  credentialVariables: ["NVIDIA_API_KEY"],
  dialects: { chat: "openai-chat" },
  // Science, video and speech models with request formats of their own; embedding models require an
  // `input_type` that OpenAI's dialect does not have.
  deviatingModels: [
    {
      match: /esm|gliner|bevformer|sparsedrive|streampetr|studiovoice|detect|usdvalidate/,
      dialect: "none",
    },
    { match: /embed|bge|rerank|paligemma|voicechat|cosmos|riva-/, dialect: "none" },
  ],
  deviations: { maxTokensField: "max_tokens", answersResults: "mistral" },
  naming: {},
} satisfies ProviderDefinition;
