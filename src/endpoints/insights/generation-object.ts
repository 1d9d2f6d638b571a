import { z } from "zod";
import { explainCharge, type PriceVector } from "../../billing/ledger/price.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { AttemptRecord, GenerationRecord } from "../../insights/generation-record.ts";
import { isRunId } from "../../identity/keys/run.ts";
import { brand } from "../../platform/kernel/brand.ts";
import type { Usage } from "../../platform/kernel/usage.ts";
import { picoPerTokenFromUsdPerMillion, usdFromNano } from "../../platform/kernel/money.ts";

/** A line of an explained charge. */
export interface ChargeLineObject {
  part: string;
  quantity: number;
  usd_per_million: number;
  amount_usd: number;
}

/** Returns the price vector that a record was charged with, from its stored text. */
export function priceVectorOf(price: Readonly<Record<string, string>>): PriceVector {
  const entries = Object.entries(price).map(([part, text]) => [
    part,
    picoPerTokenFromUsdPerMillion(text) ?? 0n,
  ]);
  return Object.fromEntries(entries) as PriceVector;
}

/**
 * Returns the lines of a charge, one for each part of its usage; empty where nothing was charged by
 * usage.
 */
export function chargeLines(record: GenerationRecord): ChargeLineObject[] {
  const { price } = record.detail;
  // What a provider key paid for was not charged.
  if (
    price === null ||
    record.model.endsWith(":free") ||
    record.detail.credentialSource !== undefined
  )
    return [];
  return explainCharge(
    { version: "", base: priceVectorOf(price) },
    record.detail.usage as Usage,
  ).map((line) => ({
    part: line.part,
    quantity: line.quantity,
    usd_per_million:
      line.minutePricePicoUsd === undefined
        ? Number(line.unitPricePicoUsd) / 1e6
        : Number(line.minutePricePicoUsd) / 6e10,
    amount_usd: usdFromNano(line.amountNanoUsd),
  }));
}

/**
 * Returns latency and generation time of a record in milliseconds: to the first content, and from
 * there to the end.
 */
const timesOf = ({ latencyMs, firstTokenMs }: GenerationRecord) => ({
  latency: firstTokenMs ?? latencyMs,
  generation_time: firstTokenMs === null ? latencyMs : latencyMs - firstTokenMs,
  total_time: latencyMs,
});

const unknown = z.null().describe("Always null: not recorded.");

const attemptSchema = lazily(() =>
  z
    .object({
      provider: z.string().describe("Provider of the attempt."),
      model: z.string().describe("Id of the requested model."),
      upstream_model: z.string().describe("The provider's name for the model."),
      status: z
        .int()
        .nullable()
        .describe("HTTP status of the provider's answer; null if none arrived."),
      outcome: z.enum(["served", "failed", "cancelled"]).describe("Outcome of the attempt."),
      reason: z
        .string()
        .nullable()
        .describe(
          "Why the next candidate was tried, such as rate_limited or timeout; null if the attempt succeeded.",
        ),
      duration_ms: z.number().describe("Duration of the attempt in milliseconds."),
    })
    .describe("An attempt at a provider."),
);

const priceSchema = lazily(() =>
  z
    .object({
      version: z
        .string()
        .nullable()
        .describe("Version of the prices, such as the date of the catalog."),
      usd_per_million: z
        .record(z.string(), z.string())
        .describe("USD per million tokens by part of the usage, as decimal strings."),
      lines: z
        .array(
          z.object({
            part: z
              .string()
              .describe("Part of the usage, such as input_tokens or cache_read_tokens."),
            quantity: z.number().describe("Number of tokens or requests."),
            usd_per_million: z.number().describe("Price in USD per million."),
            amount_usd: z.number().describe("Cost in USD."),
          }),
        )
        .describe("The charge, one line for each part of the usage."),
    })
    .describe("Prices that were applied to the request."),
);

const holdSchema = lazily(() =>
  z
    .object({
      reserved_usd: z.number().describe("USD held before the first attempt."),
      charged_usd: z.number().describe("USD charged from the hold."),
      uncollected_usd: z.number().describe("USD of the cost that the balance could not cover."),
    })
    .describe("The hold on the balance and its settlement."),
);

/** Returns the fields that identify a request and what it asked for. */
const identityFields = () => ({
  id: z.string().describe("`gen_` id; its digits are the trace id."),
  upstream_id: z.string().nullable().describe("The provider's id for its answer."),
  trace_id: z.string().describe("Trace id of the request, as in X-Service-Trace-Id."),
  request_id: z.string().describe("Copy of trace_id."),
  workspace_id: z.string().describe("Workspace that was charged."),
  run_id: z.string().nullable().describe("Run that the request belongs to; null outside of runs."),
  created_at: z.string().describe("When the request arrived, ISO 8601 in UTC."),
  api_type: z
    .enum(["completions", "embeddings", "rerank", "decisions"])
    .nullable()
    .describe(
      "Kind of request in OpenRouter's terms; null for kinds that OpenRouter does not have, such as moderations.",
    ),
  surface: z.string().describe("Kind of request, such as chat, messages, responses or embeddings."),
  model: z.string().describe("Catalog id of the model that served or was tried last."),
  requested_model: z
    .string()
    .describe(
      "Requested catalog id, router or name of an alias; of a preset, the model that it names.",
    ),
  router: z
    .string()
    .nullable()
    .describe("Requested routing preset, such as service/auto; null if a model was requested."),
});

/** Returns the fields that say who served it, and how it ended. */
const servingFields = () => ({
  provider_name: z
    .string()
    .nullable()
    .describe("Provider that served or was tried last; null if none was tried."),
  provider_responses: z
    .array(
      z.object({
        provider_name: z.string().describe("Provider of the attempt."),
        status: z
          .int()
          .nullable()
          .describe("HTTP status of the provider's answer; null if none arrived."),
        latency: z.number().describe("Duration of the attempt in milliseconds."),
        is_byok: z.boolean().describe("Whether the workspace's own provider key was used."),
        model_permaslug: z.string().describe("Id of the requested model."),
      }),
    )
    .describe("The attempts in OpenRouter's format."),
  upstream_model: z
    .string()
    .nullable()
    .describe("The provider's name for the model; null if no provider was tried."),
  status: z
    .enum(["completed", "cut", "cancelled", "cached", "failed"])
    .describe(
      "Outcome of the request. cut: the provider stopped in the middle. cancelled: the client disconnected. cached: answered from " +
        "the cache, without a provider.",
    ),
  streamed: z.boolean().describe("Whether the answer was streamed."),
  cancelled: z.boolean().describe("Whether the client disconnected before the end."),
  error: z
    .object({
      code: z.string().describe("Code of the error."),
      status: z.int().describe("HTTP status of the answer."),
    })
    .nullable()
    .describe("Error that the request was answered with; null if it did not fail."),
  finish_reason: z.string().nullable().describe("Why the model stopped."),
  native_finish_reason: z
    .string()
    .nullable()
    .describe("Copy of finish_reason; the provider's own term is not recorded."),
});

/** Returns the fields of cost, key and tokens. */
const costFields = () => ({
  total_cost: z.number().describe("Charge in USD."),
  usage: z.number().describe("Copy of total_cost."),
  is_byok: z
    .boolean()
    .describe(
      "Whether the workspace's own provider key served, so that the provider bills the request.",
    ),
  credential_source: z.string().describe("Owner of the provider key: platform, own_byok or pool."),
  provider_key_id: z
    .string()
    .nullable()
    .describe("Id of the workspace's own provider key that served; null for other keys."),
  tokens_prompt: z.int().describe("Prompt tokens, including cached tokens."),
  tokens_completion: z.int().describe("Completion tokens, including reasoning tokens."),
  native_tokens_prompt: z.int().describe("Copy of tokens_prompt: counts are the provider's own."),
  native_tokens_completion: z.int().describe("Copy of tokens_completion."),
  native_tokens_reasoning: z.int().describe("Reasoning tokens."),
  native_tokens_cached: z.int().describe("Prompt tokens that were read from the provider's cache."),
  native_tokens_completion_images: z.int().describe("Image tokens of the answer."),
});

/** Returns the fields of time. */
const timeFields = () => ({
  latency: z
    .number()
    .describe("Milliseconds until the first content of a stream, or until the complete answer."),
  generation_time: z
    .number()
    .describe(
      "Milliseconds from the first content until the end of a stream; for other answers, the whole duration.",
    ),
  total_time: z.number().describe("Milliseconds from the request until the end of its answer."),
  moderation_latency: unknown,
  cache_discount: unknown,
  data_region: z.literal("global").describe("Always global: requests are not bound to a region."),
});

/** Returns the fields that the sender set about itself. */
const senderFields = () => ({
  origin: z.string().describe("URL of the app, from HTTP-Referer; empty if it was not sent."),
  http_referer: z.string().nullable().describe("Copy of that URL; null if it was not sent."),
  app_title: z.string().nullable().describe("Name of the app, from X-Title."),
  app_id: unknown,
  team_id: z.string().nullable().describe("Id of the team of the key; null for none."),
  external_user: z
    .string()
    .nullable()
    .describe(
      "The caller's id of its end user: user, safety_identifier, or metadata.user_id of Messages; its first 256 characters. Null if " +
        "none was sent, and under zero data retention.",
    ),
  user_agent: z
    .string()
    .nullable()
    .describe(
      "The request's User-Agent header; its first 256 characters. Null for background responses, and under zero data retention.",
    ),
  preset_id: z
    .string()
    .nullable()
    .describe("Preset of the workspace that was requested as the model; null for a model."),
  batch_id: z
    .string()
    .nullable()
    .describe("Batch whose line the request was, as its client knows it; null for other requests."),
  service_tier: z
    .enum(["batch"])
    .nullable()
    .describe(
      "batch for a line that the provider's own batch API ran, at its price; null otherwise.",
    ),
  web_search_engine: unknown,
  num_fetches: unknown,
  num_input_audio_prompt: unknown,
  num_media_completion: unknown,
  num_media_prompt: unknown,
  num_search_results: unknown,
  session_id: z.string().nullable().describe("Id of the session, if the request has one."),
  trace: z.unknown().describe("The request's trace object, as it was sent."),
});

/** Returns the fields that explain its route and its charge. */
const accountingFields = () => ({
  routing: z
    .object({
      order: z
        .array(z.string())
        .describe("Candidates in the order in which they were to be tried."),
      left_out: z.array(z.string()).describe("Routes that were excluded, each with the reason."),
    })
    .nullable()
    .describe("How the route was chosen; null if there was no choice."),
  translation_loss: z
    .array(
      z.object({
        field: z.string().describe("Field of the request."),
        reason: z.string().describe("How the field was handled."),
      }),
    )
    .describe("Parts of the request that the provider's dialect cannot express."),
  usage_estimated: z
    .boolean()
    .describe("Whether tokens were estimated because the provider reported none."),
  usage_clamped: z
    .boolean()
    .describe("Whether reported tokens were bounded because they were implausible."),
  upstream_inference_cost: z
    .number()
    .nullable()
    .describe("Cost in USD that the provider reported."),
  attempts: z.array(attemptSchema()).describe("All attempts, in order."),
  price: priceSchema().nullable().describe("Prices that were applied; null if none were known."),
  output_cap: z
    .int()
    .nullable()
    .describe("Output cap that the caller could pay, if the provider received it as its limit."),
  hold: holdSchema(),
});

/** An inference request with the explanation of its charge, under OpenRouter's field names. */
export const generationObjectSchema = lazily(() =>
  z
    .object({
      ...identityFields(),
      ...servingFields(),
      ...costFields(),
      ...timeFields(),
      ...senderFields(),
      ...accountingFields(),
    })
    .meta({ id: "Generation" }),
);

const apiTypes = {
  chat: "completions",
  messages: "completions",
  responses: "completions",
  embeddings: "embeddings",
  rerank: "rerank",
  decisions: "decisions",
} as const;
const apiTypeOf = (surface: string) =>
  surface in apiTypes ? apiTypes[surface as keyof typeof apiTypes] : null;

/** Fields of OpenRouter's record that are not recorded here. */
const notKept = {
  moderation_latency: null,
  cache_discount: null,
  app_id: null,
  web_search_engine: null,
  num_fetches: null,
  num_input_audio_prompt: null,
  num_media_completion: null,
  num_media_prompt: null,
  num_search_results: null,
} as const;

const attemptObject = (attempt: AttemptRecord): AnswerOf<typeof attemptSchema> => ({
  provider: attempt.provider,
  model: attempt.model,
  upstream_model: attempt.upstreamModel,
  status: attempt.status,
  outcome: attempt.outcome,
  reason: attempt.reason,
  duration_ms: attempt.durationMs,
});

/** Returns an attempt in OpenRouter's terms. */
const providerResponse = (attempt: AttemptRecord, { detail }: GenerationRecord) => ({
  provider_name: attempt.provider,
  status: attempt.status,
  latency: attempt.durationMs,
  model_permaslug: attempt.model,
  is_byok:
    (attempt.credentialSource ??
      (attempt.outcome === "served" ? detail.credentialSource : undefined)) === "own_byok",
});

/** Returns who asked, with what, and who served. */
const requestOf = (record: GenerationRecord) => ({
  id: record.id,
  upstream_id: record.upstreamId,
  trace_id: record.id.slice("gen_".length),
  request_id: record.id.slice("gen_".length),
  workspace_id: record.workspaceId,
  run_id: isRunId(record.keyId) ? record.keyId : null,
  created_at: new Date(record.createdAtMs).toISOString(),
  api_type: apiTypeOf(record.surface),
  surface: record.surface,
  model: record.model,
  requested_model: record.requestedModel,
  router: record.requestedModel.startsWith(`${brand.routerOwner}/`) ? record.requestedModel : null,
  provider_name: record.provider || null,
  provider_responses: record.attempts.map((attempt) => providerResponse(attempt, record)),
  upstream_model: record.upstreamModel || null,
  origin: record.detail.origin ?? "",
  http_referer: record.detail.origin ?? null,
  app_title: record.detail.appTitle ?? null,
  team_id: record.detail.team ?? null,
  external_user: record.detail.externalUser ?? null,
  user_agent: record.detail.userAgent ?? null,
  session_id: record.detail.sessionId ?? null,
  preset_id: record.detail.presetId ?? null,
  batch_id: record.detail.batchId ?? null,
  trace: record.detail.trace ?? null,
});

/** Returns how it ended, and its usage. */
const outcomeOf = (record: GenerationRecord) => ({
  status: record.status,
  streamed: record.streamed,
  cancelled: record.status === "cancelled",
  error: record.detail.error ?? null,
  finish_reason: record.finishReason,
  native_finish_reason: record.finishReason,
  tokens_prompt: record.promptTokens,
  tokens_completion: record.completionTokens,
  native_tokens_prompt: record.promptTokens,
  native_tokens_completion: record.completionTokens,
  native_tokens_reasoning: record.detail.usage["reasoningTokens"] ?? 0,
  native_tokens_cached: record.detail.usage["cacheReadTokens"] ?? 0,
  native_tokens_completion_images: record.detail.usage["outputImageTokens"] ?? 0,
  ...timesOf(record),
  data_region: "global" as const,
  attempts: record.attempts.map(attemptObject),
});

/** Returns a generation under OpenRouter's field names, with the explanation of its charge. */
export function generationObject(
  record: GenerationRecord,
): AnswerOf<typeof generationObjectSchema> {
  const { detail } = record;
  const cost = usdFromNano(record.costNanoUsd);
  return {
    ...requestOf(record),
    ...outcomeOf(record),
    ...notKept,
    total_cost: cost,
    usage: cost,
    is_byok: detail.credentialSource === "own_byok",
    credential_source: detail.credentialSource ?? "platform",
    provider_key_id: detail.providerKeyId ?? null,
    routing:
      detail.routing === undefined
        ? null
        : { order: [...detail.routing.order], left_out: [...(detail.routing.leftOut ?? [])] },
    service_tier: detail.serviceTier ?? null,
    translation_loss: [...(detail.translationLosses ?? [])],
    usage_estimated: detail.usageEstimated ?? false,
    usage_clamped: detail.usageClamped ?? false,
    upstream_inference_cost: detail.upstreamCostUsd ?? null,
    price:
      detail.price === null
        ? null
        : {
            version: detail.priceVersion,
            usd_per_million: detail.price,
            lines: chargeLines(record),
          },
    output_cap: detail.outputCap ?? null,
    hold: {
      reserved_usd: usdFromNano(BigInt(detail.holdNanoUsd)),
      charged_usd: cost,
      uncollected_usd: usdFromNano(BigInt(detail.uncollectedNanoUsd ?? 0)),
    },
  };
}
