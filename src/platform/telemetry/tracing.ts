import type { SpanRecorder } from "./span-recorder.ts";
import type { TracedInference } from "./traced-inference.ts";
import type { TracingOptions } from "./tracing-settings.ts";

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
