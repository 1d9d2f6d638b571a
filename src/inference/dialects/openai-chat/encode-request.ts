import type { JsonObject } from "../../canonical/json.ts";
import type { CanonicalRequest, OutputFormat } from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { cachingFields, furtherSampling } from "../encode-openai-fields.ts";
import { EncodeState } from "../encode-state.ts";
import { flatEffort } from "../flat-effort.ts";
import { joined, withoutUndefined } from "../without-undefined.ts";
import { encodeMessages } from "./encode-messages.ts";
import { encodeToolFields } from "./encode-tools.ts";

/** OpenAI's bound on tool names. */
const toolNameLengthMax = 64;

/** A chat completion request for an upstream; see `UpstreamDialect.encodeRequest`. */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const wrapsCustom = request.dialect !== "openai-chat" && options.quirks?.customTools !== true;
  const state = new EncodeState(request, options, {
    id: "openai-chat",
    toolNameLengthMax,
    wrapsCustom,
  });
  const body = joined<JsonObject>(
    { model: options.upstreamModel, messages: encodeMessages(state) },
    encodeStream(state),
    encodeToolFields(state),
    encodeSampling(state),
    encodeOutput(state),
    encodeReasoningRequest(state),
    encodeIdentity(state),
    encodePromptCaching(state),
    state.at("").extensionFields(request.extensions),
  );
  return {
    body: state.withoutUnsupported(body),
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

/** Usage is always asked for: the gateway meters every stream. */
function encodeStream({ request, options, quirks, sameDialect }: EncodeState): JsonObject {
  if (!options.stream) return {};
  if (quirks.noStreamOptions === true) return { stream: true };
  const obfuscation = sameDialect ? request.streamOptions?.includeObfuscation : undefined;
  return {
    stream: true,
    stream_options: {
      include_usage: true,
      ...(obfuscation !== undefined && { include_obfuscation: obfuscation }),
    },
  };
}

/** OpenAI's bound on stop texts. */
const maxStopCount = 4;

function encodeSampling(state: EncodeState): JsonObject {
  const { request, quirks } = state;
  const { sampling = {}, logProbabilities, stop } = request;
  if (stop !== undefined && stop.length > maxStopCount)
    state.lose(`stop[${maxStopCount}]`, `chat takes ${maxStopCount} stop texts`);
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    ...furtherSampling(sampling),
    n: request.choiceCount,
    stop: stop?.slice(0, maxStopCount),
    [quirks.maxTokensField === undefined || quirks.maxTokensField === "max_tokens"
      ? "max_tokens"
      : "max_completion_tokens"]: request.maxOutputTokens,
    logprobs: logProbabilities && true,
    top_logprobs: logProbabilities?.top,
  };
}

function encodeOutput({ request }: EncodeState): JsonObject {
  const { webSearch } = request;
  return {
    response_format: request.output && encodeFormat(request.output),
    verbosity: request.verbosity,
    modalities: request.modalities,
    audio: request.audio,
    prediction: request.prediction,
    web_search_options:
      webSearch &&
      withoutUndefined<JsonObject>({
        search_context_size: webSearch.contextSize,
        user_location: webSearch.userLocation && {
          type: "approximate",
          approximate: webSearch.userLocation,
        },
        ...(webSearch.extensions?.dialect === "openai-chat" ? webSearch.extensions.fields : {}),
      }),
    moderation: request.moderation,
  };
}

function encodeFormat(format: OutputFormat): JsonObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  const { name = "response", description, schema, strict } = format;
  return {
    type: "json_schema",
    json_schema: withoutUndefined<JsonObject>({ name, description, schema, strict }),
  };
}

function encodeReasoningRequest(state: EncodeState): JsonObject {
  const {
    request: { reasoning },
    quirks,
  } = state;
  if (reasoning === undefined) return {};
  if (reasoning.display !== undefined) state.lose("reasoning.display", "chat has no such field");
  if (quirks.reasoningObject === true) {
    const { budgetTokens, enabled, exclude } = reasoning;
    const effort = enabled === false ? undefined : reasoning.effort;
    // OpenRouter refuses an effort and a budget together.
    const budget = effort === undefined ? budgetTokens : undefined;
    return {
      reasoning: withoutUndefined<JsonObject>({
        effort,
        max_tokens: budget,
        enabled,
        exclude,
        summary: reasoning.summary,
      }),
    };
  }
  if (reasoning.summary !== undefined) state.lose("reasoning.summary", "chat has no such field");
  if (reasoning.budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "chat states an effort instead");
  return { reasoning_effort: flatEffort(reasoning) };
}

/** Storage and metadata of other dialects are the gateway's own business and go no further. */
function encodeIdentity({ request, sameDialect }: EncodeState): JsonObject {
  return {
    user: request.endUserId,
    safety_identifier: sameDialect ? request.safetyIdentifier : undefined,
    service_tier: serviceTier(request),
    store: sameDialect ? request.store : undefined,
    metadata: sameDialect ? request.metadata : undefined,
  };
}

/** Responses names the same tiers as chat; Messages names its own. */
const serviceTier = ({ dialect, serviceTier: tier }: CanonicalRequest): string | undefined =>
  dialect === "openai-chat" || dialect === "openai-responses" ? tier : undefined;

function encodePromptCaching(state: EncodeState): JsonObject {
  const {
    request: { promptCaching },
    sameDialect,
    quirks,
  } = state;
  if (promptCaching === undefined) return {};
  if (!sameDialect && quirks.cacheMarkers !== "prompt_cache_breakpoint") {
    state.lose("prompt_cache_key", "the upstream knows no prompt cache keys");
    return {};
  }
  return cachingFields(promptCaching);
}
