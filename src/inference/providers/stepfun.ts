import type { ProviderDefinition } from "./provider-definition.ts";

/** StepFun. Source: https://platform.stepfun.com */
export const stepfun = {
  id: "stepfun",
  name: "StepFun",
  description: "Maker of the Step models, served from its own platform.",
  website: "https://platform.stepfun.com",
  baseUrl: "https://api.stepfun.com/v1",
  credentialVariables: ["STEPFUN_API_KEY"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { maker: "stepfun" },
} satisfies ProviderDefinition;
