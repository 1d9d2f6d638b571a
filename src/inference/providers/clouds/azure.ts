import {
  openaiMaxElsewhere,
  openaiReasoningNames,
  openaiRefusals,
  openaiToolsAlone,
  openaiUnknownFields,
  openaiUnreasonedFunctions,
} from "../openai-models.ts";
import { firstSet, hostFrom, type ProviderDefinition } from "../provider-definition.ts";

/** Azure. Source: https://azure.microsoft.com/products/ai-foundry */
export const azure = {
  id: "azure",
  name: "Azure",
  description: "OpenAI and partner models deployed in an Azure resource of one's own.",
  website: "https://azure.microsoft.com/products/ai-foundry",
  // The v1 API, which needs no `api-version`. Deployments are expected to have their models' names.
  baseUrl: (environment) => {
    const resource = hostFrom(environment, ["AZURE_RESOURCE_NAME"]);
    if (resource !== undefined) return `https://${resource}.openai.azure.com/openai/v1`;
    // The address that Azure's portal and OpenAI's SDKs name; with or without the API's path.
    const endpoint = firstSet(environment, ["AZURE_OPENAI_ENDPOINT"])?.replace(/\/+$/, "");
    return endpoint && `${endpoint.replace(/\/openai(?:\/v1)?$/, "")}/openai/v1`;
  },
  // Claude is served beside OpenAI's models, in its own dialect and with the same key.
  dialectBaseUrls: (environment) => {
    const resource = hostFrom(environment, ["AZURE_RESOURCE_NAME"]);
    return resource === undefined
      ? {}
      : { "anthropic-messages": `https://${resource}.services.ai.azure.com/anthropic/v1` };
  },
  credentialVariables: ["AZURE_API_KEY", "AZURE_OPENAI_API_KEY"],
  credentialHeader: { name: "api-key", prefix: "" },
  dialects: {
    chat: "openai-chat",
    embeddings: "openai-embeddings",
    images: "openai-images",
    transcriptions: "openai-audio",
    speech: "openai-audio",
    realtime: "openai-realtime",
  },
  // The router is billed by the model that it picks; the instruct model completes text and does not
  // chat.
  deviatingModels: [
    { match: /^claude-/, dialect: "anthropic-messages" },
    { match: /^(?:gpt-3\.5-turbo-instruct|model-router)$/, dialect: "none" },
    { match: /^(?:o\d|gpt-[\d.]+)-pro$|codex|deep-research/, dialect: "openai-responses" },
  ],
  // Models that reason take functions on /responses (learn.microsoft.com, "Reasoning models").
  secondDialect: {
    dialect: "openai-responses",
    except: /^(?!gpt|o\d)|audio|instruct/,
    toolsAlone: openaiToolsAlone,
  },
  reasoningNames: openaiReasoningNames,
  refuses: openaiRefusals,
  deviations: {
    maxTokensField: "max_completion_tokens",
    customTools: true,
    userLengthMax: 64,
    callIds: "openai",
    unsupportedFields: openaiUnknownFields,
    unreasonedFunctions: openaiUnreasonedFunctions,
    maxEffortElsewhere: openaiMaxElsewhere,
    answersResults: "mistral",
  },
  naming: {},
} satisfies ProviderDefinition;
