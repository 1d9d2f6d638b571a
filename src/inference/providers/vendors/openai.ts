import {
  openaiMaxElsewhere,
  openaiReasoningNames,
  openaiRefusals,
  openaiToolsAlone,
  openaiUnknownFields,
  openaiUnreasonedFunctions,
} from "../openai-models.ts";
import type { ProviderDefinition } from "../provider-definition.ts";

/** OpenAI. Source: https://platform.openai.com */
export const openai = {
  id: "openai",
  name: "OpenAI",
  description: "Maker of the GPT and o-series models, served from its own platform.",
  website: "https://platform.openai.com",
  baseUrl: "https://api.openai.com/v1",
  credentialVariables: ["OPENAI_API_KEY"],
  dialects: {
    chat: "openai-chat",
    embeddings: "openai-embeddings",
    moderations: "openai-moderations",
    images: "openai-images",
    transcriptions: "openai-audio",
    speech: "openai-audio",
    realtime: "openai-realtime",
  },
  // These answer on /v1/responses only; see the "Endpoints" part of each model page.
  deviatingModels: [
    { match: /^(?:o\d|gpt-[\d.]+)-pro$|codex|deep-research/, dialect: "openai-responses" },
  ],
  // The rest answers on both; models that reason take functions on /v1/responses (2026-07).
  secondDialect: {
    dialect: "openai-responses",
    except: /audio|search-preview|instruct/,
    toolsAlone: openaiToolsAlone,
  },
  reasoningNames: openaiReasoningNames,
  refuses: openaiRefusals,
  // Kept for 30 days to monitor abuse, unless a contract says otherwise.
  dataPolicy: { zdr: false },
  // Reasoning models answer 400 to `max_tokens`.
  deviations: {
    maxTokensField: "max_completion_tokens",
    customTools: true,
    developerRole: true,
    cacheMarkers: "prompt_cache_breakpoint",
    userLengthMax: 64,
    callIds: "openai",
    unsupportedFields: openaiUnknownFields,
    unreasonedFunctions: openaiUnreasonedFunctions,
    maxEffortElsewhere: openaiMaxElsewhere,
    // Chat models are answered with 404 there.
    ownCompletions: {
      form: "openai",
      models: /^(?:gpt-3\.5-turbo-instruct|davinci-002|babbage-002)/,
    },
  },
  batches: "openai",
  filesApi: "openai",
  naming: { maker: "openai" },
} satisfies ProviderDefinition;
