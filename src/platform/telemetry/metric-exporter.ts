import { type Attributes, type HrTime, ValueType } from "@opentelemetry/api";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from "@opentelemetry/otlp-exporter-base/node-http";
import {
  JsonMetricsSerializer,
  MetricsExporterMetricsHelper,
} from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  MeterProvider,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { MetricDefinition } from "./exposition.ts";
import type { HistogramCell } from "./metric-family.ts";
import type { Clock } from "../kernel/clock.ts";
import type { OtlpSettings } from "./tracing.ts";

/** Options of pushing metrics. */
export interface MetricPushOptions {
  /** The target of metrics, and the interval; absent turns the push off. */
  target?: OtlpSettings["metrics"] | undefined;
  serviceName: string;
  version: string;
  /**
   * Distinguishes this process from others of the same service, whose numbers are added to its own.
   */
  instanceId: string;
  /** Further attributes of the service. */
  resource?: Readonly<Record<string, string>> | undefined;
  /** The gateway's own metrics, which `/metrics` also shows. */
  definitions: readonly MetricDefinition[];
  clock: Pick<Clock, "nowMs">;
  /**
   * Called for each export that could not be delivered. The next one contains the same sums and
   * more.
   */
  onExportError?: (error: unknown) => void;
}

const exportTimeoutMs = 5_000;

/** Sends metrics at every interval, and once more at the shutdown. */
export function startExporter(
  options: MetricPushOptions & { target: NonNullable<MetricPushOptions["target"]> },
): { shutdown(): Promise<void> } {
  const { intervalMs } = options.target;
  const resource = resourceFromAttributes({
    ...options.resource,
    "service.name": options.serviceName,
    "service.version": options.version,
    "service.instance.id": options.instanceId,
  });
  const reader = new PeriodicExportingMetricReader({
    exporter: exporterOf(options),
    exportIntervalMillis: intervalMs,
    exportTimeoutMillis: Math.min(exportTimeoutMs, intervalMs),
    metricProducers: [cellProducer(options)],
  });
  const provider = new MeterProvider({ resource, readers: [reader] });
  // A collector that is gone must not fail the shutdown; the exporter has reported it.
  return { shutdown: () => provider.shutdown().catch(() => undefined) };
}

/**
 * Builds the exporter of metrics as OpenTelemetry's own package does, from the modules that the
 * exporter of traces loads anyway.
 */
function exporterOf({
  target,
  onExportError,
}: MetricPushOptions & { target: { endpoint: string; headers: Record<string, string> } }) {
  const settings = {
    url: target.endpoint,
    headers: target.headers,
    timeoutMillis: exportTimeoutMs,
  };
  const base = new OTLPExporterBase<ResourceMetrics>(
    createOtlpHttpExportDelegate(
      convertLegacyHttpOptions(settings, "METRICS", "v1/metrics", {
        "Content-Type": "application/json",
      }),
      JsonMetricsSerializer,
      "otlp_http_metric_exporter",
      MetricsExporterMetricsHelper,
      undefined,
    ),
  );
  return {
    export: (metrics, done) =>
      base.export(metrics, (result) => {
        if (result.error !== undefined) onExportError?.(result.error);
        done(result);
      }),
    forceFlush: () => base.forceFlush(),
    shutdown: () => base.shutdown(),
  } satisfies PushMetricExporter;
}

const scopeName = "switchyard";

/**
 * Reads the gateway's cells when metrics are sent. Every sum counts from the start of the process.
 */
function cellProducer({
  definitions,
  version,
  clock,
}: Pick<MetricPushOptions, "definitions" | "version" | "clock">): MetricProducer {
  const startTime = hrTime(clock.nowMs());
  return {
    async collect() {
      const times = { startTime, endTime: hrTime(clock.nowMs()) };
      const metrics = await Promise.all(
        definitions.map((definition) => metricData(definition, times)),
      );
      const scopeMetrics = [{ scope: { name: scopeName, version }, metrics }];
      return {
        resourceMetrics: { resource: resourceFromAttributes({}), scopeMetrics },
        errors: [],
      };
    },
  };
}

interface Times {
  startTime: HrTime;
  endTime: HrTime;
}

const hrTime = (nowMs: number): HrTime => [
  Math.floor(nowMs / 1000),
  Math.round((nowMs % 1000) * 1_000_000),
];

async function metricData(definition: MetricDefinition, times: Times): Promise<MetricData> {
  const { kind, name } = definition;
  const base = {
    descriptor: {
      name,
      description: definition.help,
      unit: unitOf(name),
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (kind === "histogram") {
    const dataPoints = definition.family.entries().map(({ labels, cell }) => ({
      ...times,
      attributes: given(labels),
      value: histogramOf(cell),
    }));
    return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints =
    "read" in definition
      ? [{ ...times, attributes: {}, value: await definition.read() }]
      : definition.family.entries().map(({ labels, cell }) => ({
          ...times,
          attributes: given(labels),
          value: cell.value,
        }));
  return kind === "gauge"
    ? { ...base, dataPointType: DataPointType.GAUGE, dataPoints }
    : { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
}

/** Returns the labels that have a value, since the conventions ask to omit empty ones. */
const given = (labels: Readonly<Record<string, string>>): Attributes =>
  Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ""));

const histogramOf = ({ bounds, counts, sum }: HistogramCell) => ({
  buckets: { boundaries: [...bounds], counts: [...counts] },
  sum,
  count: counts.reduce((total, count) => total + count, 0),
});

/**
 * Returns the unit (UCUM) by the end of a metric's name. The conventions' tokens have a unit of
 * their own.
 */
const unitOf = (name: string): string => {
  if (name.endsWith("_seconds") || name.endsWith(".duration") || name.endsWith("_chunk"))
    return "s";
  if (name.endsWith("_bytes")) return "By";
  return name.endsWith(".token.usage") ? "{token}" : "1";
};
