import { explainCharge, type ChargeableUsage, type PriceVector } from "../../account/ledger/price.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { picoPerTokenFromUsdPerMillion, usdFromNano } from "../../platform/lib/money.ts";

/** One line of an explained charge. */
export interface ChargeLineObject {
  part: string;
  quantity: number;
  usd_per_million: number;
  amount_usd: number;
}

/** The price vector that a record was charged with, from the text that was kept of it. */
function priceOf(price: Record<string, string> | null): PriceVector | undefined {
  if (price === null) return undefined;
  const entries = Object.entries(price).map(([part, text]) => [part, picoPerTokenFromUsdPerMillion(text) ?? 0n]);
  return Object.fromEntries(entries) as PriceVector;
}

/** What a charge consists of, a line each part of its usage; empty where nothing was charged by usage. */
export function chargeLines(record: GenerationRecord): ChargeLineObject[] {
  const base = priceOf(record.detail.price);
  // What a provider key paid was not charged.
  if (base === undefined || record.model.endsWith(":free") || record.detail.credentialSource !== undefined) return [];
  return explainCharge({ version: "", base }, record.detail.usage as ChargeableUsage).map((line) => ({
    part: line.part,
    quantity: line.quantity,
    usd_per_million: Number(line.unitPricePicoUsd) / 1e6,
    amount_usd: usdFromNano(line.amountNanoUsd),
  }));
}

const reasoningTokens = ({ detail }: GenerationRecord): number => detail.usage["reasoningTokens"] ?? 0;

/** Latency and throughput of a record: milliseconds to the first content, then of generation. */
const timesOf = ({ latencyMs, firstTokenMs }: GenerationRecord) => ({
  latency: firstTokenMs ?? latencyMs,
  generation_time: firstTokenMs === null ? latencyMs : latencyMs - firstTokenMs,
  total_time: latencyMs,
});

/** OpenRouter's field names for one generation, with how its charge came about. */
export function generationObject(record: GenerationRecord): Record<string, unknown> {
  const { detail } = record;
  const cost = usdFromNano(record.costNanoUsd);
  return {
    id: record.id,
    upstream_id: record.upstreamId,
    trace_id: record.id.slice("gen_".length),
    created_at: new Date(record.createdAtMs).toISOString(),
    model: record.model,
    requested_model: record.requestedModel,
    provider_name: record.provider || null,
    upstream_model: record.upstreamModel || null,
    status: record.status,
    streamed: record.streamed,
    cancelled: record.status === "cancelled",
    error: detail.error ?? null,
    finish_reason: record.finishReason,
    native_finish_reason: record.finishReason,
    total_cost: cost,
    usage: cost,
    is_byok: detail.credentialSource === "own_byok",
    credential_source: detail.credentialSource ?? "platform",
    provider_key_id: detail.providerKeyId ?? null,
    tokens_prompt: record.promptTokens,
    tokens_completion: record.completionTokens,
    native_tokens_prompt: record.promptTokens,
    native_tokens_completion: record.completionTokens,
    native_tokens_reasoning: reasoningTokens(record),
    native_tokens_cached: detail.usage["cacheReadTokens"] ?? 0,
    ...timesOf(record),
    origin: detail.origin ?? null,
    app_title: detail.appTitle ?? null,
    session_id: detail.sessionId ?? null,
    trace: detail.trace ?? null,
    routing: detail.routing === undefined ? null : { order: detail.routing.order, left_out: detail.routing.leftOut ?? [] },
    translation_loss: detail.translationLosses ?? [],
    usage_estimated: detail.usageEstimated ?? false,
    usage_clamped: detail.usageClamped ?? false,
    upstream_inference_cost: detail.upstreamCostUsd ?? null,
    attempts: record.attempts.map((attempt) => ({
      provider: attempt.provider, model: attempt.model, upstream_model: attempt.upstreamModel, status: attempt.status,
      outcome: attempt.outcome, reason: attempt.reason, duration_ms: attempt.durationMs,
    })),
    price: detail.price === null ? null : { version: detail.priceVersion, usd_per_million: detail.price, lines: chargeLines(record) },
    output_cap: detail.outputCap ?? null,
    hold: {
      reserved_usd: usdFromNano(BigInt(detail.holdNanoUsd)),
      charged_usd: cost,
      uncollected_usd: usdFromNano(BigInt(detail.uncollectedNanoUsd ?? 0)),
    },
  };
}
