import type { SpanRecorder } from "./span-recorder.ts";
import type { TracedInference } from "./traced-inference.ts";

/** Records traces of inference. */
export interface Tracing {
  /** False when no endpoint is configured; callers may then spare themselves the record. */
  readonly enabled: boolean;
  /** Takes one settled request; never throws and never waits. */
  recordInference(inference: TracedInference): void;
  /** Sends what is buffered; resolves within some five seconds, also when the collector is gone. */
  shutdown(): Promise<void>;
}

const noTracing: Tracing = {
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
  const { endpoint } = options;
  if (endpoint === undefined) return noTracing;
  const waiting: TracedInference[] = [];
  let recorder: SpanRecorder | undefined;
  const loaded = import("./span-recorder.ts").then(({ createSpanRecorder }) => {
    recorder = createSpanRecorder({ ...options, endpoint });
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
  /** Full URL of the collector's traces path; absent turns tracing off. */
  endpoint?: string;
  /** Headers of every export, such as a collector's credential. */
  headers?: Readonly<Record<string, string>>;
  serviceName: string;
  version: string;
  /**
   * Told of each batch that could not be delivered; spans are dropped then, requests are
   * unaffected.
   */
  onExportError?: (error: unknown) => void;
}

/** Variables of a process, as `process.env` has them. */
type Environment = Readonly<Record<string, string | undefined>>;

/** The path that a base endpoint is completed with (OTLP/HTTP specification). */
const tracesPath = "v1/traces";

/**
 * Reads OpenTelemetry's usual variables: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` as it stands, else
 * `OTEL_EXPORTER_OTLP_ENDPOINT` with `v1/traces` added, the headers of either kind, `OTEL_SERVICE_NAME` and
 * `OTEL_SDK_DISABLED`. The sampler's variables are read by the SDK itself. The endpoint is absent when tracing is off.
 */
export function readTracingSettings(
  environment: Environment,
): Pick<TracingOptions, "endpoint" | "headers" | "serviceName"> {
  const endpoint =
    environment.OTEL_SDK_DISABLED?.toLowerCase() === "true" ? undefined : endpointFrom(environment);
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    headers: {
      ...headersFrom(environment.OTEL_EXPORTER_OTLP_HEADERS),
      ...headersFrom(environment.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
    },
    serviceName: environment.OTEL_SERVICE_NAME || "switchyard",
  };
}

function endpointFrom(environment: Environment): string | undefined {
  const own = environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?.trim();
  if (own) return own;
  const base = environment.OTEL_EXPORTER_OTLP_ENDPOINT?.trim();
  return base ? `${base.replace(/\/+$/, "")}/${tracesPath}` : undefined;
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
