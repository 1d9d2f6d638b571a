import {
  firstSet,
  type Environment,
  type ProviderDefinition,
  type SigningCredential,
} from "../provider-definition.ts";

/** The beta that streams the arguments of calls as they come. */
const fineGrained = "fine-grained-tool-streaming-2025-05-14";

/** Amazon Bedrock. Source: https://aws.amazon.com/bedrock */
export const amazonBedrock = {
  id: "amazon-bedrock",
  name: "Amazon Bedrock",
  description: "Models of many makers on AWS, billed to an AWS account.",
  website: "https://aws.amazon.com/bedrock",
  // The OpenAI-compatible endpoints of bedrock-runtime: chat completions and Responses.
  baseUrl: (environment) => `${runtimeUrl(environment)}/openai/v1`,
  // Claude answers InvokeModel with the bodies of its own API; Converse is Amazon's for all models.
  dialectBaseUrls: (environment) => ({
    "anthropic-messages": runtimeUrl(environment),
    "amazon-converse": runtimeUrl(environment),
  }),
  // An API key for Bedrock, or keys that sign.
  credentialVariables: ["AWS_BEARER_TOKEN_BEDROCK"],
  signing: awsKeys,
  dialects: { chat: "openai-chat" },
  // Which API reaches which model: docs.aws.amazon.com, "API compatibility"
  // (models-api-compatibility, 2026-11). Nova, Llama, Jamba, Command, Palmyra, R1 and Pixtral
  // support only Converse and InvokeModel; Nova's sound and picture models do not support Converse
  // either.
  deviatingModels: [
    { match: /anthropic\.claude/, dialect: "anthropic-messages" },
    { match: /(?:^|\.)(?:openai\.gpt-[5-9]|xai\.)/, dialect: "openai-responses" },
    { match: /amazon\.nova-(?:2-)?(?:sonic|canvas|reel)/, dialect: "none" },
    {
      match: /amazon\.nova|meta\.llama|ai21\.|cohere\.command|writer\.|deepseek\.r1|pixtral/,
      dialect: "amazon-converse",
    },
  ],
  deviations: {
    maxTokensField: "max_completion_tokens",
    messagesPath: "invoke-model",
    bodyVersion: "bedrock-2023-05-31",
    eventStreamFrames: true,
    // docs.aws.amazon.com, "Anthropic Claude Messages API": others are answered with 400 "invalid
    // beta flag".
    knownBetas: [
      "computer-use-2024-10-22",
      "computer-use-2025-01-24",
      "context-1m-2025-08-07",
      "context-management-2025-06-27",
      "dev-full-thinking-2025-05-14",
      "effort-2025-11-24",
      fineGrained,
      "interleaved-thinking-2025-05-14",
      "output-128k-2025-02-19",
      "token-efficient-tools-2025-02-19",
      "tool-examples-2025-10-29",
      "tool-search-tool-2025-10-19",
    ],
    // The field is refused with the beta too, which alone does the same (vercel/ai#17179, 2026-07).
    eagerBeta: fineGrained,
    unknownMessagesFields: ["metadata", "service_tier", "container", "inference_geo"],
  },
  // Inference profiles have a region as prefix: `eu.anthropic.claude-...`.
  naming: {
    separator: ".",
    strip: ["global.", "us.", "eu.", "jp.", "au.", "apac."],
  },
} satisfies ProviderDefinition;

const regionOf = (environment: Environment): string =>
  firstSet(environment, ["AWS_REGION", "AWS_DEFAULT_REGION"]) ?? "us-east-1";

const runtimeUrl = (environment: Environment): string =>
  `https://bedrock-runtime.${regionOf(environment)}.amazonaws.com`;

/** Returns the access keys that AWS's own clients read from the environment. */
function awsKeys(environment: Environment): SigningCredential | undefined {
  const accessKeyId = firstSet(environment, ["AWS_ACCESS_KEY_ID"]);
  const secretAccessKey = firstSet(environment, ["AWS_SECRET_ACCESS_KEY"]);
  const sessionToken = firstSet(environment, ["AWS_SESSION_TOKEN"]);
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return {
    type: "aws-sigv4",
    accessKeyId,
    secretAccessKey,
    region: regionOf(environment),
    service: "bedrock",
    ...(sessionToken !== undefined && { sessionToken }),
  };
}
