import type { AttemptRecord, GenerationRecord } from "../insights/generation-record.ts";
import type { GatewayError } from "../platform/lib/errors.ts";

/** Told of what happened, for metrics and traces; must not throw and must not wait. */
export interface InferenceObserver {
  /** An attempt at a provider ended. */
  attemptEnded(attempt: AttemptRecord): void;
  /** A request was settled and its record written. */
  settled(record: GenerationRecord, timing: RequestTiming): void;
  /** A request ended with an error and was not settled. */
  failed(request: {
    error: GatewayError;
    traceId: string;
    workspaceId: string;
    keyId: string;
    surface: string;
    requestedModel: string;
    attempts: readonly AttemptRecord[];
    durationMs: number;
  }): void;
  /** A settlement failed; the caller was told, and nothing stands. */
  settlementFailed(error: unknown, generationId: string): void;
  /** An answer was given and charged, but could not be stored for later. */
  responseNotKept(error: unknown, responseId: string): void;
  streamOpened(): void;
  streamClosed(): void;
}

/** Where the time of a request went, in milliseconds of the monotonic clock. */
export interface RequestTiming {
  startedMs: number;
  /** Sending of the first upstream request. */
  firstSendMs: number;
  firstContentMs: number | null;
  /** The last byte of the upstream's answer. */
  upstreamEndMs: number;
  settledMs: number;
}
