import type { AnswerTokens } from "../inference/dialects/answer-tokens.ts";
import type { RowOf } from "../platform/storage/record-columns.ts";

/** The two forms in which clients know batches. */
export type BatchForm = "openai" | "anthropic";

/** The states of a batch, as OpenAI has them. */
export type BatchStatus =
  | "validating"
  | "failed"
  | "in_progress"
  | "finalizing"
  | "completed"
  | "expired"
  | "cancelling"
  | "cancelled";

/** A problem of a batch's input, which makes it fail as a whole. */
export interface InputProblem {
  code: string;
  message: string;
  param: string | null;
  /** The number of the line, from 1; null where it concerns the whole input. */
  line: number | null;
}

/** Many requests of one key, which are run within a time. */
export interface Batch {
  /** A `batch_` id; Anthropic's form of it has the prefix `msgbatch_`. */
  id: string;
  workspaceId: string;
  /** The key that created it, whose rules apply when a line runs. */
  keyId: string;
  form: BatchForm;
  /** The path of every line, such as `/v1/chat/completions`. */
  endpoint: string;
  completionWindow: string;
  status: BatchStatus;
  createdAtMs: number;
  expiresAtMs: number;
  inProgressAtMs: number | null;
  finalizingAtMs: number | null;
  /** When it ended, in whichever status. */
  endedAtMs: number | null;
  cancellingAtMs: number | null;
  inputFileId: string;
  outputFileId: string | null;
  errorFileId: string | null;
  /** Seconds for which its results are kept; null permanently. */
  outputExpiresSeconds: number | null;
  total: number;
  completed: number;
  failed: number;
  /** What its lines cost so far, in nano-USD. */
  costNano: number;
  problems: InputProblem[] | null;
  metadata: Record<string, string> | null;
  usage: AnswerTokens | null;
  /** The failures of its lines by HTTP status or code; null until it has ended. */
  failures: Record<string, number> | null;
  /** Why no line runs at the moment; null while lines run. */
  pauseNote: string | null;
  pausedUntilMs: number;
  /** The key of its results, sealed by the vault. */
  sealedKey: string;
}

/** Returns the id of a batch as clients of its form know it. */
export const shownBatchId = ({ id, form }: Pick<Batch, "id" | "form">): string =>
  form === "anthropic" ? `msg${id}` : id;

/** Statuses in which a gateway still has to do something. */
export const openStatuses = ["validating", "in_progress", "finalizing", "cancelling"] as const;

/** A line of a batch: where its request is in the input. */
export interface BatchLine {
  batchId: string;
  /** Its number, from 1. */
  line: number;
  customId: string;
  start: number;
  length: number;
  tries: number;
  /** Where it was handed to a provider, its model, and what is reserved for it in nano-USD. */
  model?: string | null;
  upstreamModel?: string | null;
  reservedNano?: number;
}

/** The tables of batches, of their lines, and of the results that are not in files yet. */
export interface BatchTables {
  batches: RowOf<Omit<Batch, "outputExpiresSeconds">> & {
    output_expires_s: number | null;
    leased_by: string | null;
    leased_until_ms: number;
  };
  batch_lines: {
    batch_id: string;
    line: number;
    custom_id: string;
    start_byte: number;
    bytes: number;
    leased_by: string | null;
    leased_until_ms: number;
    not_before_ms: number;
    tries: number;
    done: number;
    /** Where it was handed to a provider, its model, and what is reserved for it. */
    model: string | null;
    upstream_model: string | null;
    reserved_nano: number;
  };
  /** Who is to be notified of batches. */
  batch_watchers: {
    id: string;
    batch_id: string;
    workspace_id: string;
    channel: string;
    target: string;
    /** Whether a pause was reported. */
    pause_noticed: number;
    attempts: number;
    next_attempt_ms: number;
  };
  /** What was decided of each batch: where its lines run, and the provider's batches that run them. */
  provider_batches: {
    batch_id: string;
    state: string;
    reason: string | null;
    provider: string | null;
    /** The provider's batches, as JSON. */
    parts: string | null;
    key: string | null;
    next_poll_ms: number;
    tries: number;
  };
  batch_results: {
    batch_id: string;
    line: number;
    /** The HTTP status; 0 while only the charge of a failed request is known. */
    status: number;
    cost_nano: number;
    /** The sealed line of the output. */
    result: string;
  };
}
