import type { JsonObject } from "../../canonical/json.ts";
import { joined } from "../without-undefined.ts";
import type { GeminiState } from "./encode-state.ts";
import { encodeThinking } from "./encode-thinking.ts";

/** Gemini's bound on stop texts. */
const maxStopCount = 5;
const seedMax = 2 ** 31 - 1;

/** `generationConfig`; undefined when the request asks for nothing in particular. */
export function encodeGenerationConfig(state: GeminiState): JsonObject | undefined {
  const config = joined<JsonObject>(encodeSampling(state), encodeOutput(state), {
    thinkingConfig: encodeThinking(state),
  });
  loseTheRest(state);
  return Object.keys(config).length === 0 ? undefined : config;
}

function encodeSampling(state: GeminiState): JsonObject {
  const { sampling = {}, choiceCount, maxOutputTokens, logProbabilities } = state.request;
  const top = logProbabilities?.top;
  state.loseIfSet("min_p", sampling.minP);
  state.loseIfSet("top_a", sampling.topA);
  state.loseIfSet("repetition_penalty", sampling.repetitionPenalty);
  state.loseIfSet("logit_bias", sampling.logitBias);
  return {
    temperature: sampling.temperature,
    topP: sampling.topP,
    // Nought turns it off elsewhere and is refused here.
    topK: sampling.topK === 0 ? undefined : sampling.topK,
    ...encodePenalties(state),
    seed: encodeSeed(state),
    candidateCount: choiceCount,
    stopSequences: encodeStop(state),
    maxOutputTokens,
    responseLogprobs: logProbabilities && true,
    logprobs: top === undefined || top === 0 ? undefined : top,
  };
}

/** A penalty of nought is none, and need not be said. */
function encodePenalties(state: GeminiState): JsonObject {
  const { frequencyPenalty, presencePenalty } = state.request.sampling ?? {};
  const penalties = {
    frequencyPenalty: frequencyPenalty || undefined,
    presencePenalty: presencePenalty || undefined,
  };
  if (state.traits.penalties) return penalties;
  if (penalties.frequencyPenalty !== undefined)
    state.lose("frequency_penalty", "the model takes no penalties");
  if (penalties.presencePenalty !== undefined)
    state.lose("presence_penalty", "the model takes no penalties");
  return {};
}

/** Gemini's seed has 32 bits. */
function encodeSeed(state: GeminiState): number | undefined {
  const seed = state.request.sampling?.seed;
  if (seed === undefined || (Number.isInteger(seed) && Math.abs(seed) <= seedMax)) return seed;
  state.lose("seed", "Gemini's seed has 32 bits");
  return undefined;
}

function encodeStop(state: GeminiState): readonly string[] | undefined {
  const stop = state.request.stop?.filter((text) => text !== "");
  if (stop === undefined || stop.length === 0) return undefined;
  if (stop.length > maxStopCount)
    state.lose(`stop[${maxStopCount}]`, `Gemini takes ${maxStopCount} stop texts`);
  return stop.slice(0, maxStopCount);
}

function encodeOutput(state: GeminiState): JsonObject {
  const { modalities } = state.request;
  const isPlainText =
    modalities === undefined || (modalities.length === 1 && modalities[0] === "text");
  return {
    ...encodeFormat(state),
    responseModalities: isPlainText
      ? undefined
      : modalities.map((modality) => modality.toUpperCase()),
  };
}

function encodeFormat(state: GeminiState): JsonObject {
  const { output, tools } = state.request;
  if (output === undefined || output.type === "text") return {};
  if (
    !state.traits.formatBesideTools &&
    tools !== undefined &&
    tools.some((tool) => tool.type !== "hosted")
  ) {
    state.lose("response_format", "the model keeps to no format while it is offered tools");
    return {};
  }
  return {
    responseMimeType: "application/json",
    responseJsonSchema: output.type === "json-schema" ? output.schema : undefined,
  };
}

/** Fields that Gemini has no counterpart of. Identity, storage and metadata are the gateway's own business. */
function loseTheRest(state: GeminiState): void {
  const { request } = state;
  state.loseIfSet("verbosity", request.verbosity);
  state.loseIfSet("prediction", request.prediction);
  state.loseIfSet("audio", request.audio);
  state.loseIfSet("moderation", request.moderation);
  state.loseIfSet("prompt_cache_key", request.promptCaching);
  if (request.serviceTier === "flex" || request.serviceTier === "priority")
    state.loseIfSet("service_tier", request.serviceTier);
  state.at("").loseDecoration({ extensions: request.extensions });
}
