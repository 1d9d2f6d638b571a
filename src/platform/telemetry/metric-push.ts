import type { MetricDefinition } from "./exposition.ts";
import {
  errorTypeOf,
  genAi,
  genAiMetrics,
  genAiProvider,
  type TracedAttempt,
  type TracedInference,
} from "./traced-inference.ts";
import { noTracing, type Tracing } from "./tracing.ts";
import { histogramFamily } from "./metric-family.ts";
import type { MetricPushOptions } from "./metric-exporter.ts";

/** Bucket bounds that the conventions recommend, in seconds and in tokens. */
const secondBounds = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const tokenBounds = [
  1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
  67_108_864,
];

/**
 * The most distinct models; further ones are counted as `other`, since callers may name models of
 * their own.
 */
const maxModels = 200;

/**
 * Counts the metrics that OpenTelemetry's conventions define for clients of models. An operation is
 * one attempt at a provider; tokens are those of the attempt that was charged. An answer from the
 * cache is no operation.
 */
class GenAiMetrics {
  readonly #durations = histogramFamily(
    secondBounds,
    genAi.operationName,
    genAi.providerName,
    genAi.requestModel,
    genAi.errorType,
  );
  readonly #firstChunks = histogramFamily(
    secondBounds,
    genAi.operationName,
    genAi.providerName,
    genAi.requestModel,
  );
  readonly #tokens = histogramFamily(
    tokenBounds,
    genAi.operationName,
    genAi.providerName,
    genAi.requestModel,
    genAiMetrics.tokenType,
  );
  readonly #models = new Set<string>();

  record({ attributes, attempts }: TracedInference): void {
    const operation = String(attributes[genAi.operationName] ?? "inference");
    for (const attempt of attempts) this.#recordAttempt(operation, attempt);
    const last = attempts.at(-1);
    if (last === undefined) return;
    const labels = this.#labelsOf(operation, last);
    for (const [type, count] of [
      ["input", attributes[genAi.usageInputTokens]],
      ["output", attributes[genAi.usageOutputTokens]],
    ] as const)
      if (typeof count === "number" && count > 0) this.#tokens.at(...labels, type).observe(count);
  }

  #recordAttempt(operation: string, attempt: TracedAttempt): void {
    const labels = this.#labelsOf(operation, attempt);
    const seconds = (attempt.endMs - attempt.startMs) / 1000;
    this.#durations.at(...labels, errorTypeOf(attempt) ?? "").observe(seconds);
    if (attempt.firstChunkSeconds !== undefined)
      this.#firstChunks.at(...labels).observe(attempt.firstChunkSeconds);
  }

  #labelsOf(operation: string, { provider, model = "" }: TracedAttempt): string[] {
    if (this.#models.size < maxModels) this.#models.add(model);
    return [operation, genAiProvider(provider), this.#models.has(model) ? model : "other"];
  }

  /** Returns the metrics, to be read whenever they are sent. */
  definitions(): MetricDefinition[] {
    const kind = "histogram";
    return [
      {
        kind,
        name: genAiMetrics.operationDuration,
        help: "GenAI operation duration.",
        family: this.#durations,
      },
      {
        kind,
        name: genAiMetrics.timeToFirstChunk,
        help: "Time to receive the first chunk.",
        family: this.#firstChunks,
      },
      {
        kind,
        name: genAiMetrics.tokenUsage,
        help: "Number of input and output tokens used.",
        family: this.#tokens,
      },
    ];
  }
}

/**
 * Sends the gateway's metrics and those of the GenAI conventions over OTLP/HTTP with JSON. Without
 * an endpoint, nothing is sent and OpenTelemetry's modules are not loaded.
 */
export function createMetricPush({ target, ...options }: MetricPushOptions): Tracing {
  if (target === undefined) return noTracing;
  const metrics = new GenAiMetrics();
  const definitions = [...options.definitions, ...metrics.definitions()];
  const loaded = import("./metric-exporter.ts").then(({ startExporter }) =>
    startExporter({ ...options, target, definitions }),
  );
  return {
    enabled: true,
    recordInference: (inference) => metrics.record(inference),
    shutdown: async () => (await loaded).shutdown(),
  };
}
