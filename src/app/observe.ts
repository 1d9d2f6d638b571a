import type { AccessLog } from "./access-log.ts";
import type { Account } from "./open-account.ts";
import type { Archive } from "../insights/archive/open-archive.ts";
import type { LedgerPort } from "../billing/ledger/ledger-port.ts";
import type { UncollectedReports } from "../billing/ledger/uncollected-charges.ts";
import type { InferenceObserver } from "../inference/pipeline/execution.ts";
import type { RequestTiming } from "../inference/pipeline/served-answer.ts";
import type { Insights } from "../insights/open-insights.ts";
import type { AttemptRecord, GenerationRecord } from "../insights/generation-record.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { GatewayError } from "../platform/kernel/errors.ts";
import { LogLimit } from "../platform/kernel/log-limit.ts";
import { usdFromNano } from "../platform/kernel/money.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { Replica } from "../platform/storage/postgres/replica.ts";
import {
  genAi,
  genAiProvider,
  type TracedAttempt,
  type TracedInference,
} from "../platform/telemetry/traced-inference.ts";
import type { Tracing } from "../platform/telemetry/tracing.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { FinishedInference, Metrics, Outcome } from "../platform/telemetry/metrics.ts";

interface Telemetry {
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing;
}

const attemptOutcomes: Record<AttemptRecord["outcome"], Outcome> = {
  served: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

/**
 * Error codes of requests that were settled in spite of their error, and so are counted already.
 */
const settledCodes: ReadonlySet<string> = new Set([
  "client_closed_request",
  "max_tokens_too_small",
]);

/** Returns the observer that turns inference events into metrics, traces and logs. */
export function observeInference({
  logger,
  metrics,
  tracing,
  clock,
}: Telemetry & { clock: Clock }): InferenceObserver {
  const limit = new LogLimit(clock);
  return {
    attemptEnded: ({ provider, outcome }) =>
      metrics.upstreamAttempt(provider, attemptOutcomes[outcome]).inc(),
    settled: (record, timing) => {
      recordMetrics(metrics, { record, timing });
      if (tracing.enabled)
        tracing.recordInference(traceOf({ record, timing, nowMs: clock.nowMs() }));
    },
    failed: ({ error, traceId, surface, requestedModel, attempts, durationMs }) => {
      if (!tracing.enabled) return;
      const endMs = clock.nowMs();
      tracing.recordInference({
        traceId,
        name: `${operationOf(surface)} ${requestedModel}`,
        startMs: endMs - durationMs,
        endMs,
        attributes: {
          [genAi.operationName]: operationOf(surface),
          [genAi.requestModel]: requestedModel,
        },
        attempts: tracedAttempts(attempts, endMs - durationMs),
        error: { type: error.code, message: error.message },
      });
    },
    settlementFailed: (error, generationId) => {
      const cause = error instanceof Error ? error.message : String(error);
      const leftOut = limit.pass(cause);
      if (leftOut === undefined) return;
      const fields = { err: error, generation: generationId, left_out: leftOut };
      logger.error(fields, `charge rejected: ${cause}; it will be booked as uncollected`);
    },
    responseNotKept: (error, response) =>
      logger.error(
        { err: error, response },
        "a response could not be stored; its client received it",
      ),
    earlyStreamFailed: (error, generationId) =>
      logger.error({ err: error, generation: generationId }, "the gateway failed on a stream"),
    streamOpened: () => metrics.openStreams.inc(),
    streamClosed: () => metrics.openStreams.dec(),
  };
}

/** Returns an observer that also reports to the insights. */
export function withInsights(
  observer: InferenceObserver,
  { recorder }: Insights,
): InferenceObserver {
  return {
    ...observer,
    attemptEnded(attempt) {
      observer.attemptEnded(attempt);
      recorder.attemptEnded(attempt);
    },
    settled(record, timing) {
      observer.settled(record, timing);
      recorder.settled(record);
    },
    failed(request) {
      observer.failed(request);
      const { error, attempts } = request;
      if (!settledCodes.has(error.code))
        recorder.failed({ attempts, ownFault: error.fault === "gateway" });
    },
  };
}

/** The path labels of metrics, by a record's surface. */
const endpointLabels: Readonly<Record<string, string>> = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
  embeddings: "/v1/embeddings",
  rerank: "/v1/rerank",
  moderations: "/v1/moderations",
  decisions: "/v1/decisions",
  ocr: "/v1/ocr/extract",
};

/**
 * Returns the operation name of a surface in traces (OpenTelemetry's `gen_ai.operation.name`): chat
 * for every chat dialect.
 */
const operationOf = (surface: string): string =>
  surface === "messages" || surface === "responses" ? "chat" : surface;

function recordMetrics(
  metrics: Metrics,
  { record, timing }: { record: GenerationRecord; timing: RequestTiming },
): void {
  const finished: FinishedInference = {
    endpoint: endpointLabels[record.surface] ?? record.surface,
    status: record.status === "cancelled" ? 499 : 200,
    provider: record.provider,
    model: record.model,
    workspace: record.workspaceId,
    key: record.keyId,
    outcome: record.status,
    durationMs: timing.settledMs - timing.startedMs,
    overheadMs: timing.firstSendMs - timing.startedMs + (timing.settledMs - timing.upstreamEndMs),
    tokens: record.detail.usage,
    chargedNanoUsd: record.costNanoUsd,
  };
  if (timing.firstContentMs !== null)
    finished.firstTokenMs = timing.firstContentMs - timing.startedMs;
  metrics.recordInference(finished);
  const { uncollectedNanoUsd } = record.detail;
  if (uncollectedNanoUsd !== undefined)
    metrics.uncollectedNanoUsd("balance").inc(Number(uncollectedNanoUsd));
}

/**
 * Derives start times of attempts: they follow each other, so their durations add up from the start
 * of the first.
 */
function tracedAttempts(attempts: readonly AttemptRecord[], firstStartMs: number): TracedAttempt[] {
  let startMs = firstStartMs;
  return attempts.map((attempt) => {
    const traced: TracedAttempt = {
      provider: attempt.provider,
      startMs,
      endMs: startMs + attempt.durationMs,
      status: attempt.status ?? 0,
      model: attempt.upstreamModel,
      ...(attempt.reason === null ? {} : { errorType: attempt.reason }),
    };
    startMs = traced.endMs;
    return traced;
  });
}

/** Adds the time of the first content to the last attempt; the others failed before any. */
const withFirstChunk = (
  attempts: readonly TracedAttempt[],
  firstChunkMs: number | null,
): readonly TracedAttempt[] =>
  firstChunkMs === null
    ? attempts
    : attempts.map((attempt, index) =>
        index < attempts.length - 1
          ? attempt
          : { ...attempt, firstChunkSeconds: Math.max(0, firstChunkMs - attempt.startMs) / 1000 },
      );

/** Returns the tokens written to a cache with any lifetime; undefined where there were none. */
const cacheWrites = (usage: Readonly<Record<string, number | undefined>>): number | undefined =>
  (usage["cacheWriteTokens"] ?? 0) + (usage["cacheWriteOneHourTokens"] ?? 0) || undefined;

function traceOf({
  record,
  timing,
  nowMs,
}: {
  record: GenerationRecord;
  timing: RequestTiming;
  nowMs: number;
}): TracedInference {
  const startMs = nowMs - (timing.settledMs - timing.startedMs);
  const firstChunkMs =
    timing.firstContentMs === null ? null : startMs + (timing.firstContentMs - timing.startedMs);
  const { detail } = record;
  return {
    traceId: record.id.slice("gen_".length),
    ...(detail.traceParent === undefined ? {} : { parent: detail.traceParent }),
    name: `${operationOf(record.surface)} ${record.requestedModel}`,
    startMs,
    endMs: nowMs,
    attributes: {
      [genAi.operationName]: operationOf(record.surface),
      [genAi.providerName]: record.provider === "" ? undefined : genAiProvider(record.provider),
      [genAi.requestModel]: record.requestedModel,
      [genAi.responseModel]: record.model,
      [genAi.requestStream]: record.streamed,
      [genAi.responseId]: record.id,
      [genAi.responseFinishReasons]:
        record.finishReason === null ? undefined : [record.finishReason],
      [genAi.usageInputTokens]: record.promptTokens,
      [genAi.usageOutputTokens]: record.completionTokens,
      [genAi.usageCacheReadInputTokens]: detail.usage["cacheReadTokens"],
      [genAi.usageCacheCreationInputTokens]: cacheWrites(detail.usage),
      [genAi.usageReasoningOutputTokens]: detail.usage["reasoningTokens"],
      [genAi.responseTimeToFirstChunk]:
        record.firstTokenMs === null ? undefined : record.firstTokenMs / 1000,
    },
    attempts: withFirstChunk(
      tracedAttempts(record.attempts, startMs + (timing.firstSendMs - timing.startedMs)),
      firstChunkMs,
    ),
    ...(record.status === "completed" ? {} : { error: { type: record.status } }),
  };
}

/** Counts requests in flight and those that no settlement counts, and writes the access log. */
export function observeRequests({
  metrics,
  accessLog,
}: {
  metrics: Metrics;
  accessLog?: AccessLog | undefined;
}) {
  return {
    onBegin: (): void => metrics.requestsInFlight.inc(),
    onEnd(answered: Parameters<AccessLog["answered"]>[0]): void {
      const { path, status, settled } = answered;
      metrics.requestsInFlight.dec();
      if (!settled) metrics.request(`/v1${path}`, status).inc();
      accessLog?.answered(answered);
    },
  };
}

/** Counts refused and failed requests, and logs those that need the operator's attention. */
export function observeErrors({
  logger,
  metrics,
  clock,
}: Pick<Telemetry, "logger" | "metrics"> & { clock: Clock }) {
  const limit = new LogLimit(clock);
  return (
    error: GatewayError,
    { traceId, method, path }: { traceId: string; method: string; path: string },
  ): void => {
    metrics.error(error.code).inc();
    if (error.code === "rate_limit_exceeded" || error.code === "ip_rate_limit_exceeded")
      metrics.rateLimited.inc();
    const fields = {
      trace_id: traceId,
      method,
      path,
      code: error.code,
      fault: error.fault,
      detail: error.detail,
    };
    if (error.code === "service_unavailable") {
      const leftOut = limit.pass(error.message);
      const reason = error.cause instanceof Error ? error.cause.message : undefined;
      if (leftOut !== undefined)
        return logger.warn({ ...fields, reason, left_out: leftOut }, error.message);
    } else if (error.fault === "gateway" && error.code !== "not_configured") {
      return logger.error({ ...fields, err: error.cause ?? error }, error.message);
    } else if (error.fault === "upstream")
      return logger.warn({ ...fields, metadata: error.metadata }, error.message);
    logger.debug(fields, error.message);
  };
}

/** Returns the metrics and log lines of charges that the database refused. */
export function observeUncollected({
  logger,
  metrics,
}: Pick<Telemetry, "logger" | "metrics">): UncollectedReports {
  return {
    onKept: (amountNano) => metrics.uncollectedNanoUsd("database").inc(Number(amountNano)),
    onWritten: (charges, amountNano) =>
      logger.warn(
        { charges, usd: usdFromNano(amountNano) },
        `${charges} charges that the database had refused are booked as uncollected`,
      ),
    onLost: (charges, amountNano) =>
      logger.error(
        { charges, usd: usdFromNano(amountNano) },
        `${charges} charges that the database had refused are in no book`,
      ),
  };
}

/** Registers figures that are read whenever the metrics are requested. */
export function watchFigures(
  metrics: Metrics,
  {
    ledger,
    commits,
    uncollected,
    archive,
    replica,
    account,
    clock,
  }: {
    account: Pick<Account, "directory" | "runs" | "customers">;
    clock: Clock;
    ledger: Pick<LedgerPort, "openHoldCount">;
    commits: Pick<CommitQueue, "pendingCount" | "rejectedCount">;
    uncollected: { readonly count: number };
    archive: Pick<Archive, "figures" | "contents"> | undefined;
    replica: Pick<Replica, "figures"> | undefined;
  },
): void {
  metrics.watchHoldsOpen(() => ledger.openHoldCount);
  metrics.watchCommitQueuePending(() => commits.pendingCount);
  metrics.watchCommitsRejected(() => commits.rejectedCount);
  metrics.watchUncollectedWaiting(() => uncollected.count);
  metrics.watchSpenders(() => ({
    openRuns: account.directory.openRunCount(clock.nowMs()),
    refusedByRuns: account.runs.gate.refusedCount,
    customers: account.customers.book.size,
  }));
  if (archive !== undefined)
    metrics.watchArchive(() => ({ ...archive.figures, contents: archive.contents.figures }));
  if (replica !== undefined) metrics.watchReplica(() => replica.figures);
}
