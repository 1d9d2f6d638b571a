import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { CanonicalRequest, OutputFormat } from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { cachingFields, furtherSampling } from "../encode-openai-fields.ts";
import { EncodeState } from "../encode-state.ts";
import { flatEffort } from "../flat-effort.ts";
import { asArray, asObject, unsupportedContent } from "../request-fields.ts";
import { joined, withoutUndefined } from "../without-undefined.ts";
import { includedProbabilities, includedSeals } from "./decode-request.ts";
import { encodeInput } from "./encode-input.ts";
import { encodeToolFields } from "./encode-tools.ts";

/** OpenAI's bound on tool names here. */
const toolNameLengthMax = 128;

/** OpenAI answers 400 to less. */
const maxOutputTokensMin = 16;

/**
 * A Responses request for an upstream; see `UpstreamDialect.encodeRequest`. The upstream stores nothing,
 * and is asked for its sealed thoughts, so that the next turn can bring them back.
 */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const wrapsCustom = options.quirks?.customTools === false;
  const state = new EncodeState(request, options, {
    id: "openai-responses",
    toolNameLengthMax,
    wrapsCustom,
  });
  const { instructions, input } = encodeInput(state);
  const extensions = state.at("").extensionFields(request.extensions);
  const body = joined<JsonObject>(
    { model: options.upstreamModel, input, instructions, store: false },
    encodeStream(state),
    encodeToolFields(state),
    encodeSampling(state),
    encodeBounds(state),
    { reasoning: encodeReasoning(state) },
    encodeIdentity(state),
    encodePromptCaching(state),
    extensions,
    { include: encodeInclude(state, extensions.include), text: encodeText(state, extensions.text) },
  );
  return {
    body: state.withoutUnsupported(body),
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

function encodeStream({ request, options, sameDialect }: EncodeState): JsonObject {
  if (!options.stream) return {};
  const obfuscation = sameDialect ? request.streamOptions?.includeObfuscation : undefined;
  return {
    stream: true,
    ...(obfuscation !== undefined && { stream_options: { include_obfuscation: obfuscation } }),
  };
}

/** What the API has no field for; a client of this very dialect that sent it nevertheless meant this upstream. */
function encodeSampling(state: EncodeState): JsonObject {
  const {
    request: { sampling = {} },
    sameDialect,
  } = state;
  const others = furtherSampling(sampling);
  const shared = { temperature: sampling.temperature, top_p: sampling.topP };
  if (sameDialect) return { ...shared, ...others };
  for (const field in others)
    if (others[field] !== undefined) state.lose(field, "Responses has no such field");
  return shared;
}

function encodeBounds(state: EncodeState): JsonObject {
  const { request } = state;
  if ((request.choiceCount ?? 1) > 1)
    throw unsupportedContent("n", "asks for several answers, and this model gives one; send n: 1.");
  if (request.modalities?.includes("audio")) {
    throw unsupportedContent(
      "modalities",
      'asks for sound, which this model\'s API does not give; send ["text"].',
    );
  }
  if (request.stop !== undefined) state.lose("stop", "Responses has no stop texts");
  if (request.prediction !== undefined) state.lose("prediction", "Responses has no such field");
  if (request.audio !== undefined) state.lose("audio", "Responses has no such field");
  const { maxOutputTokens } = request;
  if (maxOutputTokens !== undefined && maxOutputTokens < maxOutputTokensMin) {
    state.lose(
      "max_output_tokens",
      `raised to ${maxOutputTokensMin}, the least that Responses takes`,
    );
  }
  return {
    max_output_tokens: maxOutputTokens && Math.max(maxOutputTokens, maxOutputTokensMin),
    top_logprobs: request.logProbabilities?.top,
    modalities: state.sameDialect ? request.modalities : undefined,
    moderation: request.moderation,
  };
}

/** Other dialects' thinking as an effort; thoughts are shown as summaries where they were asked for so. */
function encodeReasoning(state: EncodeState): JsonObject | undefined {
  const {
    request: { reasoning },
    sameDialect,
  } = state;
  if (reasoning === undefined) return undefined;
  const { budgetTokens, summary, display } = reasoning;
  if (budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "Responses states an effort instead");
  const fields = withoutUndefined<JsonObject>({
    effort: flatEffort(reasoning),
    summary: summary ?? (!sameDialect && display === "summarized" ? "auto" : undefined),
    ...state.at("reasoning").extensionFields(reasoning.extensions),
  });
  return Object.keys(fields).length === 0 ? undefined : fields;
}

const encodeInclude = ({ request }: EncodeState, further: JsonValue | undefined): JsonValue => [
  includedSeals,
  ...(request.logProbabilities === undefined ? [] : [includedProbabilities]),
  ...(asArray(further) ?? []),
];

function encodeText({ request }: EncodeState, own: JsonValue | undefined): JsonObject | undefined {
  const { output, verbosity } = request;
  if (own === undefined && output === undefined && verbosity === undefined) return undefined;
  const fields = withoutUndefined<JsonObject>({
    ...asObject(own),
    ...(output && { format: encodeFormat(output) }),
    verbosity,
  });
  return Object.keys(fields).length === 0 ? undefined : fields;
}

function encodeFormat(format: OutputFormat): JsonObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  const { name = "response", description, schema, strict } = format;
  return withoutUndefined<JsonObject>({ type: "json_schema", name, description, schema, strict });
}

/** Metadata of other dialects is the gateway's own business and goes no further. */
function encodeIdentity({ request, sameDialect }: EncodeState): JsonObject {
  const namesTiers = sameDialect || request.dialect === "openai-chat";
  return {
    user: request.endUserId,
    safety_identifier: namesTiers ? request.safetyIdentifier : undefined,
    service_tier: namesTiers ? request.serviceTier : undefined,
    metadata: sameDialect ? request.metadata : undefined,
  };
}

function encodePromptCaching({ request: { promptCaching, dialect } }: EncodeState): JsonObject {
  if (promptCaching === undefined || (dialect !== "openai-responses" && dialect !== "openai-chat"))
    return {};
  return cachingFields(promptCaching);
}
