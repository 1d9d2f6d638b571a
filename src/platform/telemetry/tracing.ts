import type { TracedInference } from "./traced-inference.ts";
import type { SpanOptions, SpanRecorder } from "./span-recorder.ts";

/** The address to which one kind of telemetry is sent over OTLP/HTTP. */
export interface OtlpTarget {
  /** The full URL of the collector's path. */
  readonly endpoint: string;
  /** The headers of every export, such as a collector's credential. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The telemetry that is sent to an OpenTelemetry collector; a kind without an endpoint is not sent.
 */
export interface OtlpSettings {
  readonly serviceName: string;
  /** Further attributes of the service (`OTEL_RESOURCE_ATTRIBUTES`); absent where there are none. */
  readonly resource?: Readonly<Record<string, string>>;
  readonly traces?: OtlpTarget;
  readonly metrics?: OtlpTarget & { readonly intervalMs: number };
  /** Where the access log goes with `access_log: otlp`. */
  readonly logs?: OtlpTarget;
}

/** The variables of a process, as in `process.env`. */
type Environment = Readonly<Record<string, string | undefined>>;

/** Milliseconds between two exports of metrics, the default of OpenTelemetry's specification. */
const defaultIntervalMs = 60_000;

/**
 * Reads OpenTelemetry's usual variables, for traces, metrics and logs alike:
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` as it is, else `OTEL_EXPORTER_OTLP_ENDPOINT` with
 * `v1/traces` appended, the headers of either kind, `OTEL_TRACES_EXPORTER` where it is `none`,
 * `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and
 * `OTEL_SDK_DISABLED`. The SDK itself reads
 * the sampler's variables.
 */
export function readOtlpSettings(environment: Environment): OtlpSettings {
  const traces = targetFrom(environment, "traces");
  const metrics = targetFrom(environment, "metrics");
  const logs = targetFrom(environment, "logs");
  const { "service.name": named, ...resource } = headersFrom(environment.OTEL_RESOURCE_ATTRIBUTES);
  return {
    serviceName: environment.OTEL_SERVICE_NAME || named || "switchyard",
    ...(Object.keys(resource).length > 0 && { resource }),
    ...(traces && { traces }),
    ...(logs && { logs }),
    ...(metrics && {
      metrics: {
        ...metrics,
        intervalMs: Number(environment.OTEL_METRIC_EXPORT_INTERVAL) || defaultIntervalMs,
      },
    }),
  };
}

function targetFrom(
  environment: Environment,
  signal: "traces" | "metrics" | "logs",
): OtlpTarget | undefined {
  const name = signal.toUpperCase();
  if (environment.OTEL_SDK_DISABLED?.toLowerCase() === "true") return undefined;
  if (environment[`OTEL_${name}_EXPORTER`]?.trim().toLowerCase() === "none") return undefined;
  const base = environment.OTEL_EXPORTER_OTLP_ENDPOINT?.trim();
  const endpoint =
    environment[`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`]?.trim() ||
    (base && `${base.replace(/\/+$/, "")}/v1/${signal}`);
  if (!endpoint) return undefined;
  const headers = {
    ...headersFrom(environment.OTEL_EXPORTER_OTLP_HEADERS),
    ...headersFrom(environment[`OTEL_EXPORTER_OTLP_${name}_HEADERS`]),
  };
  return { endpoint, headers };
}

/**
 * Parses `name=value,name=value`, with values percent-encoded as in W3C Baggage; malformed entries
 * are skipped.
 */
function headersFrom(text: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of (text ?? "").split(",")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(at, 0)).trim();
    if (name !== "") headers[name] = decoded(pair.slice(at + 1).trim());
  }
  return headers;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Sends what inference did to an OpenTelemetry collector: as traces, as metrics, or as both. */
export interface Tracing {
  /** False when no endpoint is configured, so that callers can skip building the record. */
  readonly enabled: boolean;
  /** Takes one settled request; never throws and never blocks. */
  recordInference(inference: TracedInference): void;
  /** Sends what is buffered; resolves within some five seconds, even when the collector is gone. */
  shutdown(): Promise<void>;
}

/** Returns a tracing that passes everything on to several others. */
export const tellingAll = (...each: readonly Tracing[]): Tracing => ({
  enabled: each.some(({ enabled }) => enabled),
  recordInference: (inference) => {
    for (const one of each) if (one.enabled) one.recordInference(inference);
  },
  shutdown: async () => void (await Promise.all(each.map((one) => one.shutdown()))),
});

/** The tracing that sends nothing. */
export const noTracing: Tracing = {
  enabled: false,
  recordInference: () => undefined,
  shutdown: async () => undefined,
};

/**
 * The most requests that are kept while OpenTelemetry's modules load; further ones are not traced.
 */
const maxWaiting = 2_048;

/**
 * Creates tracing over OTLP/HTTP with JSON, or one that does nothing without an endpoint. The SDK
 * takes 40 ms to load, so a process without a collector never loads it, and a process with one does
 * not wait for it.
 */
export function createTracing({
  target,
  ...options
}: Omit<SpanOptions, "target"> & {
  /** The target of traces; absent turns tracing off. */
  target?: OtlpTarget | undefined;
}): Tracing {
  if (target === undefined) return noTracing;
  const waiting: TracedInference[] = [];
  let recorder: SpanRecorder | undefined;
  const loaded = import("./span-recorder.ts").then(({ createSpanRecorder }) => {
    recorder = createSpanRecorder({ ...options, target });
    for (const inference of waiting.splice(0)) recorder.record(inference);
    return recorder;
  });
  return {
    enabled: true,
    recordInference: (inference) => {
      if (recorder !== undefined) recorder.record(inference);
      else if (waiting.length < maxWaiting) waiting.push(inference);
    },
    shutdown: async () => (await loaded).shutdown(),
  };
}
