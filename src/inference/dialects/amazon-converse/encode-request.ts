import type { JsonObject } from "../../canonical/json.ts";
import type { CanonicalRequest, Sampling } from "../../canonical/request.ts";
import { claudeAbilities } from "../reasoning-rules.ts";
import { closedSchema, jsonAdvice, refuseOtherAnswers } from "../json-schema.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { EncodeState } from "../encode-state.ts";
import { joined, withoutUndefined } from "../wire-fields.ts";
import { encodeMessages } from "./encode-messages.ts";
import { encodeThinking, type ThinkingFields } from "./encode-thinking.ts";
import { encodeToolConfig } from "./encode-tools.ts";
import { converseTraits } from "./converse-traits.ts";

/**
 * A Converse request; see `UpstreamDialect.encodeRequest`. The model and whether the answer is
 * streamed stand in the path, not here.
 */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const state = new EncodeState(request, options, {
    id: "amazon-converse",
    toolNameLengthMax: 64,
    wrapsCustom: true,
  });
  refuseOtherAnswers(request);
  const toolConfig = encodeToolConfig(state);
  const { system, messages } = encodeMessages(state);
  const thinking = encodeThinking(state);
  const textFormat = encodeTextFormat(state);
  const advice = encodeJsonAdvice(state, textFormat);
  const instructions = advice === undefined ? system : [...system, { text: advice }];
  const body = withoutUndefined<JsonObject>({
    messages,
    system: instructions.length === 0 ? undefined : instructions,
    inferenceConfig: ifFilled(encodeInferenceConfig(state, thinking)),
    toolConfig,
    additionalModelRequestFields: ifFilled(joined(thinking.fields, encodeTopK(state, thinking))),
    outputConfig: ifFilled({ textFormat, effort: thinking.effort }),
    serviceTier: encodeServiceTier(state),
  });
  declareUnsaid(state);
  return {
    body: state.withoutUnsupported(body),
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

/** The object without absent members; undefined where none is left. */
function ifFilled(fields: JsonObject): JsonObject | undefined {
  const filled = joined<JsonObject>(fields);
  return Object.keys(filled).length === 0 ? undefined : filled;
}

/** Sampling parameters that no model takes through Converse. */
const unsaidSampling: readonly (readonly [key: keyof Sampling, field: string])[] = [
  ["minP", "min_p"],
  ["topA", "top_a"],
  ["frequencyPenalty", "frequency_penalty"],
  ["presencePenalty", "presence_penalty"],
  ["repetitionPenalty", "repetition_penalty"],
  ["seed", "seed"],
  ["logitBias", "logit_bias"],
];

/** The bounds and samplers that all models share. */
function encodeInferenceConfig(state: EncodeState, thinking: ThinkingFields): JsonObject {
  const { sampling = {}, stop } = state.request;
  for (const [key, field] of unsaidSampling)
    if (sampling[key] !== undefined) state.lose(field, "Converse has no such field");
  const stopSequences = stop?.filter((text) => text.trim() !== "");
  return {
    maxTokens: thinking.maxTokens,
    ...encodeSamplers(state, thinking),
    stopSequences: stopSequences?.length ? stopSequences : undefined,
  };
}

/** A temperature is at most 1 here; a model that thinks takes none, newer Claude takes one of two. */
function encodeSamplers(state: EncodeState, { refusesSampling }: ThinkingFields): JsonObject {
  const { temperature, topP } = state.request.sampling ?? {};
  const { takesOneSampler } = claudeAbilities(state.options.upstreamModel);
  if (refusesSampling) {
    if (temperature !== undefined && temperature !== 1) state.lose("temperature", noSampling);
    if (topP !== undefined && topP !== 1) state.lose("top_p", noSampling);
    return {};
  }
  const both = temperature !== undefined && topP !== undefined && takesOneSampler;
  if (both) state.lose("top_p", "the model takes it or a temperature, not both");
  if (temperature !== undefined && temperature > 1) state.lose("temperature", "at most 1 here");
  return {
    temperature: temperature === undefined ? undefined : Math.min(1, temperature),
    topP: both ? undefined : topP,
  };
}

const noSampling = "the model takes no sampling parameters here";

/** `top_k` is a parameter of single makers: Anthropic's and Amazon's spell it differently. */
function encodeTopK(state: EncodeState, { refusesSampling }: ThinkingFields): JsonObject {
  const topK = state.request.sampling?.topK;
  if (topK === undefined) return {};
  const maker = refusesSampling ? undefined : converseTraits(state.options.upstreamModel).maker;
  if (maker === "anthropic") return { top_k: topK };
  if (maker === "amazon") return { inferenceConfig: { topK } };
  state.lose("top_k", refusesSampling ? noSampling : "the model has no such parameter");
  return {};
}

/** The schema that the model is held to; it goes out as JSON text (`OutputFormatStructure`). */
function encodeTextFormat({ request: { output }, options }: EncodeState): JsonObject | undefined {
  if (output?.type !== "json-schema" || output.schema === undefined) return undefined;
  if (!converseTraits(options.upstreamModel).takesSchemas) return undefined;
  return {
    type: "json_schema",
    structure: {
      jsonSchema: withoutUndefined<JsonObject>({
        schema: JSON.stringify(closedSchema(output.schema)),
        name: output.name,
        description: output.description,
      }),
    },
  };
}

/** JSON that the model cannot be held to is asked for in words, and declared as a loss. */
function encodeJsonAdvice(
  state: EncodeState,
  textFormat: JsonObject | undefined,
): string | undefined {
  const { output } = state.request;
  if (output === undefined || output.type === "text" || textFormat !== undefined) return undefined;
  state.lose("response_format", "the model is asked to answer in JSON, and not held to it");
  return jsonAdvice(output.type === "json-schema" ? output.schema : undefined);
}

const serviceTiers = new Set(["default", "flex", "priority"]);

function encodeServiceTier(state: EncodeState): JsonObject | undefined {
  const { serviceTier } = state.request;
  if (serviceTier === undefined || serviceTier === "auto") return undefined;
  if (serviceTiers.has(serviceTier)) return { type: serviceTier };
  state.lose("service_tier", "Converse names other tiers");
  return undefined;
}

const unsaid: readonly (readonly [key: keyof CanonicalRequest, field: string])[] = [
  ["verbosity", "verbosity"],
  ["audio", "audio"],
  ["prediction", "prediction"],
  ["webSearch", "web_search_options"],
  ["promptCaching", "prompt_cache_key"],
  ["moderation", "moderation"],
];

/**
 * Declares fields of other dialects that Converse has no word for. Identity, storage and metadata
 * are the gateway's own business.
 */
function declareUnsaid(state: EncodeState): void {
  const { request } = state;
  for (const [key, field] of unsaid)
    if (request[key] !== undefined) state.lose(field, "Converse has no such field");
  state.at("").extensionFields(request.extensions);
}
