import type { Clock } from "../kernel/clock.ts";
import type { MetricDefinition } from "./exposition.ts";
import { GenAiMetrics } from "./gen-ai-metrics.ts";
import type { OtlpSettings } from "./otlp-settings.ts";
import { type Tracing, noTracing } from "./tracing.ts";

/** How metrics are pushed. */
export interface MetricPushOptions {
  /** Where metrics are sent, and how often; absent turns the push off. */
  target?: OtlpSettings["metrics"] | undefined;
  serviceName: string;
  version: string;
  /** Tells this process from others of the same service, whose numbers are added to its own. */
  instanceId: string;
  /** The gateway's own metrics, the ones that `/metrics` shows. */
  definitions: readonly MetricDefinition[];
  clock: Pick<Clock, "nowMs">;
  /** Told of each export that could not be delivered; the next one has the same sums and more. */
  onExportError?: (error: unknown) => void;
}

/**
 * Sends the gateway's metrics and those of GenAI's conventions over OTLP/HTTP with JSON, or nothing
 * without an endpoint, when OpenTelemetry's modules are not loaded at all.
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
