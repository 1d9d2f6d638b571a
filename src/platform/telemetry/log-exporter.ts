import { type HrTime, TraceFlags } from "@opentelemetry/api";
import { SeverityNumber } from "@opentelemetry/api-logs";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from "@opentelemetry/otlp-exporter-base/node-http";
import { JsonLogsSerializer, LogsExporterMetricsHelper } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchLogRecordProcessor,
  LoggerProvider,
  type LogRecordExporter,
  type ReadableLogRecord,
} from "@opentelemetry/sdk-logs";
import type { OtlpTarget } from "./tracing.ts";

/** A line of the access log. */
export interface RequestLog {
  timeMs: number;
  /** The HTTP status of the answer. */
  status: number;
  /** The fields of the line; those without a value are left out. */
  fields: Readonly<Record<string, string | number | boolean | null | undefined>>;
}

/** Options of sending the access log. */
export interface LogPushOptions {
  serviceName: string;
  version: string;
  /** Distinguishes this process from others of the same service. */
  instanceId: string;
  /** Further attributes of the service. */
  resource?: Readonly<Record<string, string>> | undefined;
  /** Called for each batch that could not be delivered; its lines are lost. */
  onExportError?: (error: unknown) => void;
}

const exportTimeoutMs = 5_000;

/** Sends log records in batches over OTLP/HTTP with JSON; at most 8,192 wait. */
export interface LogExporter {
  emit(log: RequestLog): void;
  shutdown(): Promise<void>;
}

/** Creates an exporter to `target`. */
export function startLogExporter(options: LogPushOptions & { target: OtlpTarget }): LogExporter {
  const batches = new BatchLogRecordProcessor({
    exporter: exporterOf(options),
    maxQueueSize: 8_192,
    scheduledDelayMillis: 1_000,
    exportTimeoutMillis: exportTimeoutMs,
  });
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({
      ...options.resource,
      "service.name": options.serviceName,
      "service.version": options.version,
      "service.instance.id": options.instanceId,
    }),
    processors: [inItsTrace, batches],
  });
  const logger = provider.getLogger("switchyard", options.version);
  return {
    emit: ({ timeMs, status, fields }) =>
      logger.emit({
        timestamp: hrTime(timeMs),
        ...severityOf(status),
        eventName: "switchyard.request",
        body: `${fields["surface"] ?? `${fields["method"]} ${fields["path"]}`} ${status}`,
        attributes: given(fields),
      }),
    // A collector that is gone must not fail the shutdown; the exporter has reported it.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}

/** Puts a record into the trace of its request. Its span is not known here, and stays empty. */
const inItsTrace = {
  onEmit(record: { attributes: object; spanContext?: ReadableLogRecord["spanContext"] }): void {
    const traceId: unknown = (record.attributes as Record<string, unknown>)["trace_id"];
    if (typeof traceId === "string")
      record.spanContext = { traceId, spanId: "", traceFlags: TraceFlags.NONE };
  },
  forceFlush: async () => undefined,
  shutdown: async () => undefined,
};

function severityOf(status: number): { severityNumber: SeverityNumber; severityText: string } {
  if (status >= 500) return { severityNumber: SeverityNumber.ERROR, severityText: "ERROR" };
  if (status >= 400) return { severityNumber: SeverityNumber.WARN, severityText: "WARN" };
  return { severityNumber: SeverityNumber.INFO, severityText: "INFO" };
}

const hrTime = (nowMs: number): HrTime => [
  Math.floor(nowMs / 1_000),
  Math.round((nowMs % 1_000) * 1_000_000),
];

const given = (fields: RequestLog["fields"]): Record<string, string | number | boolean> =>
  Object.fromEntries(
    Object.entries(fields).filter(
      (entry): entry is [string, string | number | boolean] =>
        entry[1] !== undefined && entry[1] !== null,
    ),
  );

/** Builds the exporter of logs as OpenTelemetry's own package does. */
function exporterOf({
  target,
  onExportError,
}: LogPushOptions & { target: OtlpTarget }): LogRecordExporter {
  const settings = {
    url: target.endpoint,
    headers: { ...target.headers },
    timeoutMillis: exportTimeoutMs,
  };
  const base = new OTLPExporterBase<ReadableLogRecord[]>(
    createOtlpHttpExportDelegate(
      convertLegacyHttpOptions(settings, "LOGS", "v1/logs", {
        "Content-Type": "application/json",
      }),
      JsonLogsSerializer,
      "otlp_http_log_exporter",
      LogsExporterMetricsHelper,
      undefined,
    ),
  );
  return {
    export: (records, done) =>
      base.export(records, (result) => {
        if (result.error !== undefined) onExportError?.(result.error);
        done(result);
      }),
    forceFlush: () => base.forceFlush(),
    shutdown: () => base.shutdown(),
  };
}
