import { firstSet, type ProviderDefinition } from "./provider-definition.ts";

/** Amazon Bedrock. Source: https://aws.amazon.com/bedrock */
export const amazonBedrock = {
  id: "amazon-bedrock",
  name: "Amazon Bedrock",
  description: "Models of many makers on AWS, billed to an AWS account.",
  website: "https://aws.amazon.com/bedrock",
  // The chat completions endpoint of bedrock-runtime, with an API key for Bedrock.
  baseUrl: (environment) => {
    const region = firstSet(environment, ["AWS_REGION", "AWS_DEFAULT_REGION"]) ?? "us-east-1";
    return `https://bedrock-runtime.${region}.amazonaws.com/openai/v1`;
  },
  credentialVariables: ["AWS_BEARER_TOKEN_BEDROCK"],
  dialects: { chat: "openai-chat" },
  // Which API reaches which model: docs.aws.amazon.com, "API compatibility" (models-api-compatibility).
  // Nova, Llama, Palmyra, R1 and Pixtral speak Converse and InvokeModel alone.
  deviatingModels: [
    { match: /anthropic\.claude/, dialect: "anthropic-messages" },
    { match: /^openai\.gpt-5|^xai\./, dialect: "openai-responses" },
    { match: /amazon\.nova|meta\.llama|writer\.|deepseek\.r1|pixtral/, dialect: "none" },
  ],
  quirks: { maxTokensField: "max_completion_tokens" },
  // Inference profiles put a region in front: `eu.anthropic.claude-...`.
  naming: {
    separator: ".",
    strip: ["global.", "us.", "eu.", "jp.", "au.", "apac."],
  },
} satisfies ProviderDefinition;
