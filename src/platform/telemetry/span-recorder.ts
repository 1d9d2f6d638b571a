import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import {
  errorTypeOf,
  genAi,
  genAiProvider,
  type TracedAttempt,
  type TracedInference,
} from "./traced-inference.ts";
import { redactText } from "./redact.ts";

/** Options of spans. */
export interface SpanOptions {
  /** The address that they are sent to, with the headers of every export. */
  target: { endpoint: string; headers: Readonly<Record<string, string>> };
  serviceName: string;
  version: string;
  /** Distinguishes this process from others of the same service. */
  instanceId?: string;
  /** Further attributes of the service. */
  resource?: Readonly<Record<string, string>> | undefined;
  /**
   * Whether a request's spans join the trace of its caller, in place of a link to it. Then any
   * caller can write into a trace whose id it knows.
   */
  continuesTraces?: boolean;
  /**
   * Called for each batch that could not be delivered. Its spans are dropped; requests are
   * unaffected.
   */
  onExportError?: (error: unknown) => void;
}

/** Turns settled requests into spans and sends them in batches. */
export interface SpanRecorder {
  record(inference: TracedInference): void;
  shutdown(): Promise<void>;
}

const exportTimeoutMs = 5_000;

/**
 * Creates a recorder that exports to `target`. At most 8,192 spans wait; further ones are dropped.
 */
export function createSpanRecorder(options: SpanOptions): SpanRecorder {
  const ids = traceIdGenerator();
  const onExportError = options.onExportError ?? (() => undefined);
  const exporter = new OTLPTraceExporter({
    url: options.target.endpoint,
    headers: { ...options.target.headers },
    timeoutMillis: exportTimeoutMs,
  });
  const processor = new BatchSpanProcessor(reportingErrors(exporter, onExportError), {
    maxQueueSize: 8_192,
    scheduledDelayMillis: 1_000,
    exportTimeoutMillis: exportTimeoutMs,
  });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      ...options.resource,
      ...(options.instanceId !== undefined && { "service.instance.id": options.instanceId }),
      "service.name": options.serviceName,
      "service.version": options.version,
    }),
    idGenerator: ids,
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer("switchyard", options.version);
  return {
    record: (inference) => {
      ids.nextTraceId = inference.traceId;
      recordSpans(tracer, { inference, continues: options.continuesTraces === true });
    },
    // A collector that is gone must not fail the shutdown; the exporter has reported it.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}

/**
 * Gives a root span the trace id that its request already has. Spans start synchronously, so one
 * slot is enough.
 */
function traceIdGenerator(): IdGenerator & { nextTraceId: string } {
  const random = new RandomIdGenerator();
  return {
    nextTraceId: "",
    generateTraceId() {
      return this.nextTraceId;
    },
    generateSpanId: () => random.generateSpanId(),
  };
}

function reportingErrors(
  exporter: SpanExporter,
  onExportError: (error: unknown) => void,
): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined) onExportError(result.error);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

function recordSpans(
  tracer: Tracer,
  { inference, continues }: { inference: TracedInference; continues: boolean },
): void {
  const parent = parseTraceParent(inference.parent);
  const { context, links } = placeInTrace(
    continues ? (parent?.traceId ?? inference.traceId) : inference.traceId,
    parent,
  );
  const span = tracer.startSpan(
    inference.name,
    {
      kind: SpanKind.SERVER,
      startTime: inference.startMs,
      attributes: inference.attributes,
      links,
    },
    context,
  );
  const inside = trace.setSpan(context, span);
  for (const attempt of inference.attempts)
    recordAttempt(tracer, { context: inside, inference, attempt });
  if (inference.error !== undefined) markFailed(span, inference.error);
  span.end(inference.endMs);
}

/**
 * Places a request in its trace. A caller's `traceparent` becomes a link, and the parent only when
 * it names the request's own trace, or where the operator lets requests continue traces. The trace
 * id is shown in `X-Service-Trace-Id` and in the generation record, so it has to be unique and the
 * gateway's own. A span can have a parent only in its own trace, and adopting a caller's trace id
 * would let one caller write into another's trace (W3C Trace Context 3.4 lets a service restart the
 * trace at a trust boundary; OpenTelemetry asks for a link there).
 */
function placeInTrace(
  traceId: string,
  parent: TraceParent | undefined,
): { context: Context; links: Link[] } {
  if (parent === undefined) return { context: ROOT_CONTEXT, links: [] };
  const spanContext = {
    traceId: parent.traceId,
    spanId: parent.spanId,
    traceFlags: parent.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  };
  if (parent.traceId !== traceId)
    return { context: ROOT_CONTEXT, links: [{ context: spanContext }] };
  return { context: trace.setSpanContext(ROOT_CONTEXT, spanContext), links: [] };
}

interface AttemptRecord {
  context: Context;
  inference: TracedInference;
  attempt: TracedAttempt;
}

function recordAttempt(tracer: Tracer, { context, inference, attempt }: AttemptRecord): void {
  const operation = inference.attributes[genAi.operationName];
  const model = attempt.model ?? inference.attributes[genAi.requestModel];
  const span = tracer.startSpan(
    [operation ?? "inference", attempt.provider].join(" "),
    {
      kind: SpanKind.CLIENT,
      startTime: attempt.startMs,
      attributes: {
        [genAi.operationName]: operation,
        [genAi.providerName]: genAiProvider(attempt.provider),
        [genAi.requestModel]: model,
        [genAi.serverAddress]: attempt.serverAddress,
        [genAi.httpResponseStatusCode]: attempt.status === 0 ? undefined : attempt.status,
        [genAi.responseTimeToFirstChunk]: attempt.firstChunkSeconds,
      },
    },
    context,
  );
  const errorType = errorTypeOf(attempt);
  if (errorType !== undefined) markFailed(span, { type: errorType });
  span.end(attempt.endMs);
}

function markFailed(span: Span, error: { type: string; message?: string }): void {
  span.setAttribute(genAi.errorType, error.type);
  const message = error.message === undefined ? {} : { message: redactText(error.message) };
  span.setStatus({ code: SpanStatusCode.ERROR, ...message });
}

/** A parsed `traceparent` header. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits. */
  traceId: string;
  /** 16 lower-case hexadecimal digits. */
  spanId: string;
  sampled: boolean;
}

const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Parses a `traceparent` header (W3C Trace Context, section 3.2); undefined when it is invalid:
 * version ff, an id of zeros, capitals, or more fields than version 00 has.
 */
export function parseTraceParent(header: string | null | undefined): TraceParent | undefined {
  const match = pattern.exec(header?.trim() ?? "");
  if (match === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "00", rest] = match;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
