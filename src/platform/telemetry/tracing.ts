import type { TracedInference } from "./traced-inference.ts";
import type { SpanRecorder } from "./span-recorder.ts";

/** Where one kind of telemetry is sent over OTLP/HTTP. */
export interface OtlpTarget {
  /** Full URL of the collector's path. */
  readonly endpoint: string;
  /** Headers of every export, such as a collector's credential. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What is sent to an OpenTelemetry collector; a kind without an endpoint is not sent. */
export interface OtlpSettings {
  readonly serviceName: string;
  readonly traces?: OtlpTarget;
  readonly metrics?: OtlpTarget & { readonly intervalMs: number };
}

/** Variables of a process, as `process.env` has them. */
type Environment = Readonly<Record<string, string | undefined>>;

/** The pause between two exports of metrics that OpenTelemetry's specification names. */
const defaultIntervalMs = 60_000;

/**
 * Reads OpenTelemetry's usual variables, for traces and metrics alike:
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` as it stands, else `OTEL_EXPORTER_OTLP_ENDPOINT` with
 * `v1/traces` added, the headers of either kind, `OTEL_TRACES_EXPORTER` where it is `none`,
 * `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_SERVICE_NAME` and `OTEL_SDK_DISABLED`. The sampler's
 * variables are read by the SDK itself.
 */
export function readOtlpSettings(environment: Environment): OtlpSettings {
  const traces = targetFrom(environment, "traces");
  const metrics = targetFrom(environment, "metrics");
  return {
    serviceName: environment.OTEL_SERVICE_NAME || "switchyard",
    ...(traces && { traces }),
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
  signal: "traces" | "metrics",
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
 * `name=value,name=value`, values percent-encoded as in W3C Baggage; what is malformed is skipped.
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

/** Takes what inference did, to an OpenTelemetry collector: as traces, as metrics, or as both. */
export interface Tracing {
  /** False when no endpoint is configured; callers may then spare themselves the record. */
  readonly enabled: boolean;
  /** Takes one settled request; never throws and never waits. */
  recordInference(inference: TracedInference): void;
  /** Sends what is buffered; resolves within some five seconds, also when the collector is gone. */
  shutdown(): Promise<void>;
}

/** Tells each of several what inference did. */
export const tellingAll = (...each: readonly Tracing[]): Tracing => ({
  enabled: each.some(({ enabled }) => enabled),
  recordInference: (inference) => {
    for (const one of each) if (one.enabled) one.recordInference(inference);
  },
  shutdown: async () => void (await Promise.all(each.map((one) => one.shutdown()))),
});

/** What stands where nothing is sent. */
export const noTracing: Tracing = {
  enabled: false,
  recordInference: () => undefined,
  shutdown: async () => undefined,
};

/** Requests kept while OpenTelemetry's modules load; further ones of that moment are not traced. */
const maxWaiting = 2_048;

/**
 * Tracing over OTLP/HTTP with JSON, or nothing at all without an endpoint. The SDK takes 40 ms to
 * load, so a process without a collector never loads it and a process with one does not wait for
 * it.
 */
export function createTracing(options: TracingOptions): Tracing {
  const { target } = options;
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

/** How tracing is built. */
export interface TracingOptions {
  /** Where traces are sent; absent turns tracing off. */
  target?: OtlpTarget | undefined;
  serviceName: string;
  version: string;
  /**
   * Told of each batch that could not be delivered; spans are dropped then, requests are
   * unaffected.
   */
  onExportError?: (error: unknown) => void;
}
