import type { LogExporter, LogPushOptions, RequestLog } from "./log-exporter.ts";
import type { OtlpTarget } from "./tracing.ts";

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
