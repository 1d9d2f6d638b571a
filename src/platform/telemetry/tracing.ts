import type { GenAiAttributes } from "./gen-ai-attributes.ts";
import type { SpanRecorder } from "./span-recorder.ts";

/** One call of an upstream. */
export interface TracedAttempt {
  /** Provider slug. */
  provider: string;
  /** Wall time in milliseconds since the epoch. */
  startMs: number;
  endMs: number;
  /** HTTP status of the upstream; 0 when it gave none. */
  status: number;
  /** Wire name of the model. */
  model?: string;
  /** Host of the upstream. */
  serverAddress?: string;
  /** Error code of a failed attempt; absent on success. */
  errorType?: string;
}

/** An inference request after its settlement. */
export interface TracedInference {
  /** Our own trace id, 32 hexadecimal digits: what `X-Service-Trace-Id` shows is what the trace is found under. */
  traceId: string;
  /** The caller's `traceparent` header as it came; an invalid one is ignored. */
  parent?: string;
  /** Wall time in milliseconds since the epoch. */
  startMs: number;
  endMs: number;
  /** Such as `chat acme/large`: the operation and the requested model. */
  name: string;
  attributes: GenAiAttributes;
  attempts: readonly TracedAttempt[];
  /** Error code and public message; absent on success. */
  error?: { type: string; message?: string };
}

/** Records traces of inference. */
export interface Tracing {
  /** False when no endpoint is configured; callers may then spare themselves the record. */
  readonly enabled: boolean;
  /** Takes one settled request; never throws and never waits. */
  recordInference(inference: TracedInference): void;
  /** Sends what is buffered; resolves within some five seconds, also when the collector is gone. */
  shutdown(): Promise<void>;
}

/** How tracing is built. */
export interface TracingOptions {
  /** Full URL of the collector's traces path; absent turns tracing off. */
  endpoint?: string;
  /** Headers of every export, such as a collector's credential. */
  headers?: Readonly<Record<string, string>>;
  serviceName: string;
  version: string;
  /** Told of each batch that could not be delivered; spans are dropped then, requests are unaffected. */
  onExportError?: (error: unknown) => void;
}

const noTracing: Tracing = {
  enabled: false,
  recordInference: () => undefined,
  shutdown: async () => undefined,
};

/** Requests kept while OpenTelemetry's modules load; further ones of that moment are not traced. */
const maxWaiting = 2_048;

/**
 * Tracing over OTLP/HTTP with JSON, or nothing at all without an endpoint. The SDK takes 40 ms to load, so a process
 * without a collector never loads it and a process with one does not wait for it.
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
