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
