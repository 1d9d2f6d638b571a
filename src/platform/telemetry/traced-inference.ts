import type { GenAiAttributes } from "./gen-ai-attributes.ts";

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
