import type { RefusedParameters } from "../../dialects/dialect.ts";
import type { NamedModel, ProviderDefinition } from "../provider-definition.ts";

/** Wire names of OpenAI's models that reason, of any version to come. */
export const openaiReasoningNames = /^(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))/;

/** Parameters of other servers, which OpenAI answers with 400 "Unrecognized request argument". */
export const openaiUnknownFields = ["top_k", "min_p", "top_a", "repetition_penalty"];

/**
 * Returns the parameters that a model refuses. Source: developers.openai.com, "Reasoning models",
 * and the reference of `stop` (2026-11).
 */
export const openaiRefusals = ({ name, reasons, takesEffort }: NamedModel): RefusedParameters =>
  reasons && !name.includes("chat")
    ? {
        always: ["stop"],
        whileReasoning: [
          "temperature",
          "top_p",
          "presence_penalty",
          "frequency_penalty",
          "logit_bias",
          "logprobs",
          "top_logprobs",
        ],
      }
    : { always: takesEffort ? [] : ["reasoning_effort"], whileReasoning: [] };

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
  },
  // These answer on /v1/responses only; see the "Endpoints" part of each model page.
  deviatingModels: [
    { match: /^(?:o\d|gpt-[\d.]+)-pro$|codex|deep-research/, dialect: "openai-responses" },
  ],
  // The rest answers on both; models that reason take functions on /v1/responses (2026-07).
  secondDialect: { dialect: "openai-responses", except: /audio|search-preview|instruct/ },
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
    unsupportedFields: openaiUnknownFields,
  },
  naming: { maker: "openai" },
} satisfies ProviderDefinition;
