import type { JsonObject } from "../../canonical/json.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { EncodeState } from "../encode-state.ts";
import { asObject, unsupportedContent } from "../request-fields.ts";
import { joined, withoutUndefined } from "../without-undefined.ts";
import { claudeAbilities } from "./claude-model.ts";
import { closedSchema } from "./complete-schema.ts";
import { encodeMessages } from "./encode-messages.ts";
import { encodeSampling } from "./encode-sampling.ts";
import { encodeThinking, type ThinkingFields } from "./encode-thinking.ts";
import { encodeToolFields } from "./encode-tools.ts";
import { limitCacheMarkers } from "./limit-cache-markers.ts";
import { userIdOf } from "./user-id.ts";

/** A Messages request for an upstream; see `UpstreamDialect.encodeRequest`. */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const state = new EncodeState(request, options, {
    id: "anthropic-messages",
    toolNameLengthMax: 128,
    wrapsCustom: true,
  });
  refuseOtherAnswers(state);
  const {
    output_config: ownConfig,
    metadata: ownMetadata,
    ...own
  } = state.at("").extensionFields(request.extensions);
  const tools = encodeToolFields(state);
  const { system, messages } = encodeMessages(state);
  const thinking = encodeThinking(state);
  const body = joined<JsonObject>(
    {
      model: options.upstreamModel,
      max_tokens: thinking.maxTokens,
      stream: options.stream || undefined,
    },
    { system: withJsonAdvice(system, state), messages },
    tools,
    {
      thinking: thinking.thinking,
      output_config: encodeOutputConfig(state, { thinking, own: asObject(ownConfig) }),
    },
    encodeSampling(state, {
      thinks: thinking.thinking !== undefined && thinking.thinking.type !== "disabled",
    }),
    encodeIdentity(state, asObject(ownMetadata)),
    own,
  );
  declareUnsaid(state);
  return {
    body: state.withoutUnsupported(limitCacheMarkers(body, state)),
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

/** What would silently be another answer than the one that was asked for. */
function refuseOtherAnswers({ request }: EncodeState): void {
  const { choiceCount = 1, logProbabilities, modalities = [] } = request;
  if (choiceCount > 1)
    throw unsupportedContent(
      "n",
      "asks for several answers, and this model's provider gives one; leave it out.",
    );
  if (logProbabilities !== undefined) {
    throw unsupportedContent(
      "logprobs",
      "asks for log probabilities, which this model's provider does not tell; leave it out.",
    );
  }
  const other = modalities.find((modality) => modality !== "text");
  if (other !== undefined)
    throw unsupportedContent(
      "modalities",
      `asks for ${other}, and this model answers in text; leave it out.`,
    );
}

function encodeOutputConfig(
  state: EncodeState,
  { thinking, own }: { thinking: ThinkingFields; own: JsonObject | undefined },
): JsonObject | undefined {
  const format = encodeFormat(state);
  if (thinking.effort === undefined && format === undefined && own === undefined) return undefined;
  const config = withoutUndefined<JsonObject>({ effort: thinking.effort, format, ...own });
  return Object.keys(config).length === 0 ? undefined : config;
}

function encodeFormat(state: EncodeState): JsonObject | undefined {
  const {
    request: { output },
    options,
    sameDialect,
  } = state;
  if (output?.type !== "json-schema" || output.schema === undefined || !holdsToSchemas(state))
    return undefined;
  if (output.description !== undefined)
    state.lose("response_format.description", `${options.upstreamModel} is told the schema alone`);
  return { type: "json_schema", schema: sameDialect ? output.schema : closedSchema(output.schema) };
}

const holdsToSchemas = ({ sameDialect, options }: EncodeState): boolean =>
  sameDialect || claudeAbilities(options.upstreamModel).takesSchemas;

/** JSON without a schema, or with one that the model cannot be held to, is asked for in words: lossy, and said to be. */
function withJsonAdvice(system: JsonObject["system"], state: EncodeState): JsonObject["system"] {
  const { output } = state.request;
  const asksJson =
    output?.type === "json" ||
    (output?.type === "json-schema" && (output.schema === undefined || !holdsToSchemas(state)));
  if (!asksJson) return system;
  state.lose("response_format", "the model is told to answer in JSON, and not held to it");
  const schema =
    output.type === "json-schema" && output.schema !== undefined
      ? ` It must follow this JSON Schema: ${JSON.stringify(output.schema)}`
      : "";
  const advice = `Answer with one JSON object and nothing else, without a code fence.${schema}`;
  if (system === undefined) return advice;
  return typeof system === "string"
    ? `${system}\n\n${advice}`
    : [...(system as readonly JsonObject[]), { type: "text", text: advice }];
}

function encodeIdentity(state: EncodeState, ownMetadata: JsonObject | undefined): JsonObject {
  const userId = userIdOf(state);
  const metadata = userId === undefined ? ownMetadata : { user_id: userId, ...ownMetadata };
  return {
    metadata: metadata === undefined || Object.keys(metadata).length === 0 ? undefined : metadata,
    service_tier: serviceTier(state),
  };
}

/** Anthropic knows two tiers; OpenAI's `default` is what it calls standard. */
function serviceTier(state: EncodeState): string | undefined {
  const { serviceTier: tier } = state.request;
  if (tier === undefined || state.sameDialect || tier === "auto") return tier;
  if (tier === "default") return "standard_only";
  state.lose("service_tier", "messages names other tiers");
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

/** Fields of other dialects that Messages has no word for. Storage and metadata are the gateway's own business. */
function declareUnsaid(state: EncodeState): void {
  const { request } = state;
  for (const [key, field] of unsaid)
    if (request[key] !== undefined) state.lose(field, "messages has no such field");
}
