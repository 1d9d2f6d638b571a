import type { InferenceObserver, RequestTiming } from "./inference/observer.ts";
import type { AttemptRecord, GenerationRecord } from "./insights/generation-record.ts";
import type { Clock } from "./platform/lib/clock.ts";
import { GatewayError } from "./platform/lib/errors.ts";
import { genAi } from "./platform/telemetry/gen-ai-attributes.ts";
import type { Logger } from "./platform/telemetry/logger.ts";
import type { Metrics, Outcome } from "./platform/telemetry/metrics.ts";
import type { TracedAttempt, TracedInference, Tracing } from "./platform/telemetry/tracing.ts";

interface Telemetry {
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing;
}

const attemptOutcomes: Record<AttemptRecord["outcome"], Outcome> = { served: "completed", failed: "failed", cancelled: "cancelled" };

/** Metrics, traces and logs of everything that inference reports. */
export function observeInference({ logger, metrics, tracing, clock }: Telemetry & { clock: Clock }): InferenceObserver {
  return {
    attemptEnded: ({ provider, outcome }) => metrics.upstreamAttempt(provider, attemptOutcomes[outcome]).inc(),
    settled: (record, timing) => {
      recordMetrics(metrics, { record, timing });
      if (tracing.enabled) tracing.recordInference(traceOf({ record, timing, nowMs: clock.nowMs() }));
    },
    failed: ({ error, traceId, requestedModel, attempts, durationMs }) => {
      if (!tracing.enabled) return;
      const endMs = clock.nowMs();
      tracing.recordInference({
        traceId, name: `chat ${requestedModel}`, startMs: endMs - durationMs, endMs,
        attributes: { [genAi.operationName]: "chat", [genAi.requestModel]: requestedModel },
        attempts: tracedAttempts(attempts, endMs - durationMs),
        error: { type: error.code, message: error.message },
      });
    },
    settlementFailed: (error, generationId) => logger.error({ err: error, generation: generationId }, "a settlement could not be committed; nothing was charged"),
    streamOpened: () => metrics.openStreams.inc(),
    streamClosed: () => metrics.openStreams.dec(),
  };
}

const endpointLabel = "/v1/chat/completions";

function recordMetrics(metrics: Metrics, { record, timing }: { record: GenerationRecord; timing: RequestTiming }): void {
  metrics.recordInference({
    endpoint: endpointLabel,
    status: record.status === "cancelled" ? 499 : 200,
    provider: record.provider,
    model: record.model,
    outcome: record.status,
    durationMs: timing.settledMs - timing.startedMs,
    overheadMs: timing.firstSendMs - timing.startedMs + (timing.settledMs - timing.upstreamEndMs),
    ...(timing.firstContentMs === null ? {} : { firstTokenMs: timing.firstContentMs - timing.startedMs }),
    tokens: record.detail.usage,
    chargedNanoUsd: record.costNanoUsd,
  });
}

/** Attempts follow each other, so their times add up from the first one's start. */
function tracedAttempts(attempts: readonly AttemptRecord[], firstStartMs: number): TracedAttempt[] {
  let startMs = firstStartMs;
  return attempts.map((attempt) => {
    const traced: TracedAttempt = {
      provider: attempt.provider, startMs, endMs: startMs + attempt.durationMs, status: attempt.status ?? 0, model: attempt.upstreamModel,
      ...(attempt.reason === null ? {} : { errorType: attempt.reason }),
    };
    startMs = traced.endMs;
    return traced;
  });
}

function traceOf({ record, timing, nowMs }: { record: GenerationRecord; timing: RequestTiming; nowMs: number }): TracedInference {
  const startMs = nowMs - (timing.settledMs - timing.startedMs);
  const { detail } = record;
  return {
    traceId: record.id.slice("gen_".length),
    ...(detail.traceParent === undefined ? {} : { parent: detail.traceParent }),
    name: `chat ${record.requestedModel}`,
    startMs,
    endMs: nowMs,
    attributes: {
      [genAi.operationName]: "chat",
      [genAi.providerName]: record.provider,
      [genAi.requestModel]: record.requestedModel,
      [genAi.responseModel]: record.model,
      [genAi.requestStream]: record.streamed,
      [genAi.responseId]: record.id,
      [genAi.responseFinishReasons]: record.finishReason === null ? undefined : [record.finishReason],
      [genAi.usageInputTokens]: record.promptTokens,
      [genAi.usageOutputTokens]: record.completionTokens,
    },
    attempts: tracedAttempts(record.attempts, startMs + (timing.firstSendMs - timing.startedMs)),
    ...(record.status === "completed" ? {} : { error: { type: record.status } }),
  };
}

/** Counts requests in flight, and those that no settlement counts. */
export function observeRequests(metrics: Metrics) {
  return {
    onBegin: (): void => metrics.requestsInFlight.inc(),
    onEnd: ({ path, status, settled }: { path: string; status: number; settled: boolean }): void => {
      metrics.requestsInFlight.dec();
      if (!settled) metrics.request(`/v1${path}`, status).inc();
    },
  };
}

/** Counts refused and failed requests, and logs those that somebody has to look at. */
export function observeErrors({ logger, metrics }: Telemetry) {
  return (error: GatewayError, { traceId, method, path }: { traceId: string; method: string; path: string }): void => {
    metrics.error(error.code).inc();
    if (error.code === "rate_limit_exceeded" || error.code === "ip_rate_limit_exceeded") metrics.rateLimited.inc();
    const fields = { trace_id: traceId, method, path, code: error.code, fault: error.fault, detail: error.detail };
    if (error.fault === "gateway") logger.error({ ...fields, err: error.cause ?? error }, error.message);
    else if (error.fault === "upstream") logger.warn({ ...fields, metadata: error.metadata }, error.message);
    else logger.debug(fields, error.message);
  };
}
