import type { LogExporter } from "./log-exporter.ts";
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

/** The most lines that are kept while OpenTelemetry's modules load; further ones are not sent. */
const maxWaiting = 2_048;

/** Sends the access log as log records over OTLP/HTTP with JSON. */
export function createLogPush(options: LogPushOptions & { target: OtlpTarget }): LogExporter {
  const waiting: RequestLog[] = [];
  let exporter: LogExporter | undefined;
  const loaded = import("./log-exporter.ts").then(({ startLogExporter }) => {
    exporter = startLogExporter(options);
    for (const log of waiting.splice(0)) exporter.emit(log);
    return exporter;
  });
  return {
    emit: (log) => {
      if (exporter !== undefined) exporter.emit(log);
      else if (waiting.length < maxWaiting) waiting.push(log);
    },
    shutdown: async () => (await loaded).shutdown(),
  };
}
