import type { CacheMarker, MediaSource, UserPart } from "../../canonical/message.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type {
  TokenLogProbability,
  TokenProbability,
  MeteredUsage,
} from "../../canonical/response.ts";
import type {
  CanonicalRequest,
  OutputFormat,
  PromptCaching,
  Sampling,
  ToolChoice,
} from "../../canonical/request.ts";
import type { EncodeState } from "./encode-state.ts";
import type { DialectId } from "../../canonical/dialect-id.ts";
import { decodeGateway, decodePromptCaching } from "./gateway-facts.ts";
import { isClosed } from "./tools.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  badRequest,
  RequestFields,
  withoutUndefined,
  CountReader,
} from "./wire-fields.ts";
import type { Usage } from "../../../platform/kernel/usage.ts";

/** A schema with its strictness, and the path at which it is lost. */
interface Strictness {
  schema: JsonObject | undefined;
  strict: boolean | undefined;
  path: string;
}

/**
 * Returns `strict` for OpenAI, which answers 400 to a strict schema with optional properties, or with
 * room for others. Anthropic enforces those as well, so what a Messages client sent is not strict here.
 * Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
 */
export function openaiStrict(
  state: EncodeState,
  { schema, strict, path }: Strictness,
): boolean | undefined {
  const enforces =
    state.request.dialect !== "anthropic-messages" || isClosed(schema ?? { type: "object" });
  if (strict !== true || enforces) return strict;
  state.lose(path, "OpenAI enforces no schema with optional properties or room for others");
  return false;
}

/** Returns the object, or undefined when it is empty. */
export const filled = <T extends object>(fields: T): T | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields;

/**
 * Decodes sampling fields that chat and Responses share: OpenAI's two, and those that servers
 * behind the gateway accept.
 */
export const decodeSharedSampling = (body: RequestFields): Sampling =>
  withoutUndefined<Sampling>({
    temperature: body.number("temperature"),
    topP: body.number("top_p"),
    topK: body.number("top_k"),
    minP: body.number("min_p"),
    topA: body.number("top_a"),
    frequencyPenalty: body.number("frequency_penalty"),
    presencePenalty: body.number("presence_penalty"),
    repetitionPenalty: body.number("repetition_penalty"),
    seed: body.number("seed"),
  });

/** Decodes fields of the whole request that chat and Responses share. */
export const decodeSharedFields = (body: RequestFields): Partial<CanonicalRequest> =>
  withoutUndefined<Partial<CanonicalRequest>>({
    modalities: body.strings("modalities"),
    promptCaching: filled(decodePromptCaching(body)),
    metadata: body.objectField("metadata"),
    endUserId: body.string("user"),
    safetyIdentifier: body.string("safety_identifier"),
    serviceTier: body.string("service_tier"),
    store: body.boolean("store"),
    moderation: body.objectField("moderation"),
    gateway: filled(decodeGateway(body)),
  });

/**
 * Decodes `tool_choice`: one of its words here, and an object by `decodeObject`, since chat and
 * Responses write objects in different ways. Throws `GatewayError` `bad_request`.
 */
export function decodeToolChoice(
  body: RequestFields,
  decodeObject: (choice: RequestFields) => ToolChoice,
): ToolChoice | undefined {
  const value = body.object["tool_choice"];
  if (value === undefined || value === null) return undefined;
  if (value === "auto" || value === "none" || value === "required") return { type: value };
  // Anthropic's word for `required`, which several clients send to OpenAI's routes as well.
  if (value === "any") return { type: "required" };
  if (typeof value === "string") {
    throw badRequest(
      "tool_choice",
      'must be "none", "auto", "required" or an object that names a tool.',
    );
  }
  return decodeObject(new RequestFields(value, "tool_choice"));
}

/** Decodes a schema that the answer has to follow, from where the dialect keeps its fields. */
export const decodeSchemaOutput = (fields: RequestFields | undefined): OutputFormat =>
  withoutUndefined<Extract<OutputFormat, { type: "json-schema" }>>({
    type: "json-schema",
    schema: fields?.objectField("schema"),
    name: fields?.string("name"),
    description: fields?.string("description"),
    strict: fields?.boolean("strict"),
  });

/**
 * Decodes the audio of an `input_audio` part. Throws `GatewayError` `bad_request` where it is
 * missing.
 */
export function decodeInputAudio(
  part: RequestFields,
  { dialect, known }: { dialect: DialectId; known: ReadonlySet<string> },
): UserPart {
  const audio = part.nested("input_audio");
  if (audio === undefined)
    throw badRequest(part.pathOf("input_audio"), 'is required: {"data": base64, "format": "wav"}.');
  return withoutUndefined<Extract<UserPart, { type: "audio" }>>({
    type: "audio",
    data: audio.requiredString("data"),
    format: audio.requiredString("format"),
    cache: decodeCache(part),
    extensions: part.unknown(dialect, known),
  });
}

/**
 * Decodes the bytes of a file: a data URL, or bare base64 of a PDF, both of which OpenAI's
 * reference has.
 */
export function fileBytes(data: string): MediaSource {
  const inline = parseDataUrl(data);
  return inline
    ? { type: "base64", ...inline }
    : { type: "base64", mediaType: "application/pdf", data };
}

/** Fields of a part or a tool that mark the end of a prompt's reusable beginning. */
export const markerFields = ["prompt_cache_breakpoint", "cache_control"] as const;

/** Decodes a part's or tool's cache marker, under either name. */
export function decodeCache(part: RequestFields): CacheMarker | undefined {
  for (const field of markerFields) {
    const marker = asObject(part.object[field]);
    if (marker === undefined) continue;
    const { ttl } = marker;
    return { ...((ttl === "5m" || ttl === "30m" || ttl === "1h") && { ttl }), field };
  }
  return undefined;
}

/**
 * Encodes sampling fields beside OpenAI's two, which servers that speak chat accept and Responses
 * does not have.
 */
export const furtherSampling = (sampling: Sampling): JsonObject => ({
  top_k: sampling.topK,
  min_p: sampling.minP,
  top_a: sampling.topA,
  frequency_penalty: sampling.frequencyPenalty,
  presence_penalty: sampling.presencePenalty,
  repetition_penalty: sampling.repetitionPenalty,
  seed: sampling.seed,
  logit_bias: sampling.logitBias,
});

/** Encodes OpenAI's fields for caching the whole prompt. */
export const cachingFields = ({ key, retention, options }: PromptCaching): JsonObject => ({
  prompt_cache_key: key,
  prompt_cache_retention: retention,
  prompt_cache_options: options,
});

/**
 * Decodes a list of tokens with their probabilities, in the form of chat and Responses; empty when
 * there is none.
 */
export const decodeTokens = (value: unknown): TokenLogProbability[] =>
  (asArray(value) ?? []).map((entry) => ({
    ...decodeCandidate(entry),
    top: (asArray(asObject(entry)?.top_logprobs) ?? []).map(decodeCandidate),
  }));

function decodeCandidate(value: JsonValue): TokenProbability {
  const fields = asObject(value);
  const bytes =
    fields?.bytes === null ? null : (asArray(fields?.bytes) as readonly number[] | undefined);
  return {
    token: asString(fields?.token) ?? "",
    logprob: asNumber(fields?.logprob) ?? 0,
    ...(bytes !== undefined && { bytes }),
  };
}

/** Encodes tokens with their probabilities. */
export const encodeTokens = (tokens: readonly TokenLogProbability[]): JsonObject[] =>
  tokens.map(({ top, ...token }) => ({ ...token, top_logprobs: top.map((one) => ({ ...one })) }));

/** Unchecked members of a JSON object. */
type Fields = Readonly<Record<string, unknown>>;

const noFields: Fields = {};

/** Returns the members of a value; none where it is not an object. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : noFields;

/**
 * Reads usage of servers that speak chat or Responses as disjoint counts whose sums are the
 * reported `prompt_tokens` and `completion_tokens`. `prompt_tokens` includes cached ones (OpenAI),
 * Anthropic's `input_tokens` does not; a bare `x_groq` wrapper is opened. Impossible counts are
 * clamped and flagged; undefined when the value has no usage.
 */
export function readOpenaiUsage(value: unknown): MeteredUsage | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const fields = value as Fields;
  const counts = new CountReader();
  const completion = counts.read(fields.completion_tokens ?? fields.output_tokens);
  const input = counts.read(fields.prompt_tokens ?? fields.input_tokens);
  if (input === undefined && completion === undefined) {
    return fields.x_groq === undefined ? undefined : readOpenaiUsage(fieldsOf(fields.x_groq).usage);
  }
  const usage: Usage = {};
  if (input !== undefined) readInput({ fields, counts, usage, total: input });
  if (completion !== undefined) readOutput({ fields, counts, usage, total: completion });
  const searched = searchCount(fields, counts);
  if (searched !== undefined && searched > 0) usage.searches = searched;
  const metered: MeteredUsage = { usage, estimated: false, clamped: counts.clamped };
  const cost = providerCost(fields);
  if (cost !== undefined) metered.providerCostUsd = cost;
  return metered;
}

/**
 * Returns the searches that chat servers count: OpenRouter's requests, and the sources of xAI's live
 * search, which it charges one by one. Sources: openrouter.ai/docs/guides/features/server-tools,
 * docs.x.ai/docs/guides/live-search (2026-07).
 */
const searchCount = (fields: Fields, counts: CountReader): number | undefined =>
  counts.read(fieldsOf(fields.server_tool_use).web_search_requests) ??
  counts.read(fields.num_sources_used);

/**
 * Returns whether a total shows that cached tokens are counted beside those of the prompt, as
 * Anthropic counts them, although the fields have OpenAI's names.
 */
function isCountedBeside(
  fields: Fields,
  { total, apart }: { total: number; apart: number },
): boolean {
  const { total_tokens: sum, completion_tokens: completion, output_tokens: output } = fields;
  return (
    apart > 0 && typeof sum === "number" && sum === total + apart + Number(completion ?? output)
  );
}

/** Adds the service tier that an answer names to its usage. */
export function withTier(
  metered: MeteredUsage | undefined,
  tier: unknown,
): MeteredUsage | undefined {
  if (metered === undefined || typeof tier !== "string" || tier === "") return metered;
  return { ...metered, levels: { service_tier: tier } };
}

interface Side {
  fields: Fields;
  counts: CountReader;
  usage: Usage;
  /** The reported total of this side. */
  total: number;
}

function readInput({ fields, counts, usage, total }: Side): void {
  const details = fieldsOf(fields.prompt_tokens_details ?? fields.input_tokens_details);
  const cached = counts.read(
    details.cached_tokens ??
      fields.prompt_cache_hit_tokens ??
      fields.cached_tokens ??
      fields.cache_read_input_tokens,
  );
  const written = counts.read(details.cache_write_tokens ?? fields.cache_creation_input_tokens);
  const oneHour = counts.read(fieldsOf(fields.cache_creation).ephemeral_1h_input_tokens);
  const isAnthropic =
    (fields.prompt_tokens === undefined && fields.input_tokens_details === undefined) ||
    isCountedBeside(fields, { total, apart: (cached ?? 0) + (written ?? 0) });
  let left = isAnthropic ? total + (cached ?? 0) + (written ?? 0) : total;
  if (cached !== undefined) left -= usage.cacheReadTokens = counts.within(cached, left);
  if (written !== undefined) {
    const fitting = counts.within(written, left);
    left -= fitting;
    splitWrites(usage, {
      written: fitting,
      oneHour: oneHour === undefined ? undefined : counts.within(oneHour, fitting),
    });
  }
  left = takeModality(details.audio_tokens, {
    counts,
    left,
    total,
    keep: (count) => (usage.inputAudioTokens = count),
  });
  left = takeModality(details.image_tokens, {
    counts,
    left,
    total,
    keep: (count) => (usage.inputImageTokens = count),
  });
  usage.inputTokens = left;
}

function splitWrites(
  usage: Usage,
  { written, oneHour }: { written: number; oneHour: number | undefined },
): void {
  usage.cacheWriteTokens = written - (oneHour ?? 0);
  if (oneHour !== undefined) usage.cacheWriteOneHourTokens = oneHour;
}

/**
 * Takes the tokens of one modality. They may overlap with cached ones, which is not a
 * contradiction: cached tokens are counted first.
 */
function takeModality(
  value: unknown,
  {
    counts,
    left,
    total,
    keep,
  }: { counts: CountReader; left: number; total: number; keep: (count: number) => void },
): number {
  const count = counts.read(value);
  if (count === undefined) return left;
  const taken = Math.min(counts.within(count, total), left);
  keep(taken);
  return left - taken;
}

function readOutput({ fields, counts, usage, total }: Side): void {
  const details = fieldsOf(fields.completion_tokens_details ?? fields.output_tokens_details);
  const reasoning = counts.read(
    details.reasoning_tokens ?? details.thinking_tokens ?? fields.reasoning_tokens,
  );
  let left = total;
  if (reasoning !== undefined) {
    if (isReasoningBeside(fields, { reasoning, completion: total })) left += reasoning;
    left -= usage.reasoningTokens = counts.within(reasoning, left);
  }
  const whole = left;
  left = takeModality(details.audio_tokens, {
    counts,
    left,
    total: whole,
    keep: (count) => (usage.outputAudioTokens = count),
  });
  left = takeModality(details.image_tokens, {
    counts,
    left,
    total: whole,
    keep: (count) => (usage.outputImageTokens = count),
  });
  usage.outputTokens = left;
}

/**
 * Returns whether reasoning is counted beside `completion_tokens` rather than within, as xAI does
 * (2026); its `total_tokens` shows it.
 */
const isReasoningBeside = (
  fields: Fields,
  { reasoning, completion }: { reasoning: number; completion: number },
): boolean =>
  reasoning > 0 &&
  typeof fields.prompt_tokens === "number" &&
  fields.total_tokens === fields.prompt_tokens + completion + reasoning;

/**
 * Returns what the provider says that it charges: `cost` (OpenRouter), `cost.total_cost`
 * (Perplexity), or what its upstream charged.
 */
function providerCost(fields: Fields): number | undefined {
  const { cost } = fields;
  if (cost === undefined && fields.cost_details === undefined) return undefined;
  const total = typeof cost === "object" ? fieldsOf(cost).total_cost : cost;
  const behind = fieldsOf(fields.cost_details).upstream_inference_cost;
  return (
    [total, behind].find((usd): usd is number => typeof usd === "number" && usd > 0) ??
    [total, behind].find((usd): usd is number => usd === 0)
  );
}

/** Bytes as text, with their media type. */
interface InlineBytes {
  mediaType: string;
  /** Base64. */
  data: string;
}

const pattern = /^data:([^;,]*)((?:;[^;,]*)*?);base64,/i;

/**
 * Parses a base64 data URL (RFC 2397); undefined for any other text. The media type is converted to
 * lower case, parameters are dropped and `image/jpg` becomes the registered `image/jpeg`.
 */
export function parseDataUrl(url: string): InlineBytes | undefined {
  const match = pattern.exec(url);
  if (match === null) return undefined;
  const mediaType = (match[1] ?? "").toLowerCase();
  return {
    mediaType:
      mediaType === "image/jpg"
        ? "image/jpeg"
        : mediaType === ""
          ? "application/octet-stream"
          : mediaType,
    data: url.slice(match[0].length),
  };
}

/** Returns the data URL of inline bytes. */
export const dataUrl = ({ mediaType, data }: InlineBytes): string =>
  `data:${mediaType};base64,${data}`;

/** Returns a picture's address, or its bytes where the address is a data URL. */
export function mediaSource(url: string): MediaSource {
  const inline = parseDataUrl(url);
  return inline ? { type: "base64", ...inline } : { type: "url", url };
}
