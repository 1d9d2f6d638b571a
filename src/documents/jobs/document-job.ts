import type { ErrorCode } from "../../platform/lib/errors.ts";

/** States of a job: waiting for its turn, at the provider, and its two ends. */
export type DocumentJobStatus = "queued" | "running" | "completed" | "failed";

/** Why a job has failed, as its caller is told. */
export interface ParseFailure {
  code: ErrorCode;
  message: string;
  /** The provider's own words and status, where it answered. */
  upstreamMessage: string | null;
  upstreamStatus: number | null;
  retryAfterSeconds?: number;
  /** Whether the same request would fail in the same way again. */
  final: boolean;
}

/** One request to have a document parsed, and what became of it. */
export interface DocumentJob {
  /** `job_` id; also the key under which the provider is asked. */
  id: string;
  workspaceId: string;
  /** SHA-256 of the request's body, in hexadecimal. */
  bodyHash: string;
  createdAtMs: number;
  status: DocumentJobStatus;
  /** Slug of the provider that was asked; null before that. */
  providerId: string | null;
  /** Pages of the document; null while it is not known. */
  pages: number | null;
  failure: ParseFailure | null;
  /** Whether the failure was answered once; after that a repeated request is a new try. */
  failureTold: boolean;
}

/** A job before it is stored. */
export interface NewDocumentJob {
  id: string;
  workspaceId: string;
  /** The caller's own, or the job's id. */
  idempotencyKey: string;
  bodyHash: string;
  /** The request's body, as it came. */
  bodyText: string;
  createdAtMs: number;
}
