import type { JsonObject } from "./json.ts";

/** An error as an upstream reported it or as a client is told; only the message is certain. */
export interface ReportedError {
  message: string;
  code?: string;
  type?: string;
  param?: string;
  /** HTTP status, where the report names one. */
  status?: number;
  /** Seconds that the caller should wait before it tries again. */
  retryAfterSeconds?: number;
  metadata?: JsonObject;
  /** The model did generate, but no answer: what the provider counted was used. */
  generated?: true;
}
