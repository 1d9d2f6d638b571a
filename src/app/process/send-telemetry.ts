import { createWriteStream } from "node:fs";
import { hostname } from "node:os";
import type { Configuration } from "../../platform/config/configuration.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import { createLogPush } from "../../platform/telemetry/log-push.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { createMetricPush } from "../../platform/telemetry/metric-push.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import {
  type Tracing,
  createTracing,
  noTracing,
  tellingAll,
} from "../../platform/telemetry/tracing.ts";
import { AccessLog, asJsonLines } from "../access-log.ts";

/** Sends traces, metrics and the access log to an OpenTelemetry collector, where one is configured. */
export function sendTelemetry(
  {
    openTelemetry,
    telemetry,
    accessLog: place,
  }: Pick<Configuration<unknown>, "openTelemetry" | "telemetry" | "accessLog">,
  {
    version,
    nodeName,
    metrics: { definitions },
    logger,
  }: { logger: Logger; metrics: Metrics; version: string; nodeName: string | undefined },
): { tracing: Tracing; accessLog: AccessLog | undefined } {
  const { serviceName, traces, metrics, logs, resource } = openTelemetry;
  const service = { serviceName, version, resource, instanceId: nodeName ?? hostname() };
  const warnOf = (what: string) => (error: unknown) =>
    logger.warn({ err: error }, `${what} could not be delivered`);
  const push =
    place === "otlp" && logs !== undefined
      ? createLogPush({ ...service, target: logs, onExportError: warnOf("the access log") })
      : undefined;
  const tracing = tellingAll(
    createTracing({
      ...service,
      target: traces,
      continuesTraces: telemetry.traceContext === "continue",
      onExportError: warnOf("traces"),
    }),
    createMetricPush({
      ...service,
      target: metrics,
      definitions: definitions,
      clock: systemClock,
      onExportError: warnOf("metrics"),
    }),
    { ...noTracing, shutdown: async () => push?.shutdown() },
  );
  const accessLog = push
    ? new AccessLog((line) => push.emit(line), systemClock)
    : openAccessLog(place, logger);
  return { tracing, accessLog };
}

/**
 * Opens the access log; undefined where there is none. Only this user can read a file of it. A file
 * that cannot be written is named in the log, and requests go on.
 */
function openAccessLog(place: string | undefined, logger: Logger): AccessLog | undefined {
  if (place === undefined) return undefined;
  if (place === "stdout")
    return new AccessLog(
      asJsonLines((text) => void process.stdout.write(text)),
      systemClock,
    );
  const file = createWriteStream(place, { flags: "a", mode: 0o600 });
  file.on("error", (error) =>
    logger.error({ err: error, path: place }, "the access log cannot be written; it ends here"),
  );
  return new AccessLog(
    asJsonLines((text) => void (file.writable && file.write(text))),
    systemClock,
  );
}
