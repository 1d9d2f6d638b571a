import type { OtlpTarget } from "./otlp-settings.ts";
import type { SpanRecorder } from "./span-recorder.ts";
import type { TracedInference } from "./traced-inference.ts";

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
