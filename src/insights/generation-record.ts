import type { Kysely } from "kysely";
import { lowestId } from "../platform/kernel/ids.ts";
import type { PictureKind } from "../platform/kernel/usage.ts";
import { type CommitQueue, recordInsert } from "../platform/storage/commit-queue.ts";
import type { StorageKind } from "../platform/storage/storage.ts";

/** An attempt at a provider, as it is kept and shown. */
export interface AttemptRecord {
  provider: string;
  model: string;
  upstreamModel: string;
  /** The HTTP status of the upstream; null when none came. */
  status: number | null;
  outcome: "served" | "failed" | "cancelled";
  /**
   * The reason for which the next candidate was tried, as one of the contract's fallback reasons;
   * null when this one served.
   */
  reason: string | null;
  durationMs: number;
  /** The source of the credential, such as `own_byok`; absent for the platform's own. */
  credentialSource?: string;
}

/** Matches the names of tags, as scopes of budgets have them. */
export const tagNamePattern = /^[\w.-]{1,60}$/;

/** All that is kept of an inference request, except its prompt and its answer. */
export interface GenerationRecord {
  /** A `gen_` id; its digits are the trace id. */
  id: string;
  /** The time that the id begins with, since lists are read by ids and filtered by this time. */
  createdAtMs: number;
  workspaceId: string;
  keyId: string;
  surface: string;
  requestedModel: string;
  model: string;
  /** The provider that served or was tried last; empty where none was called. */
  provider: string;
  upstreamModel: string;
  upstreamId: string | null;
  /**
   * `cached` was answered without calling a provider, and `failed` was answered by none; neither
   * costs anything.
   */
  status: "completed" | "cut" | "cancelled" | "cached" | "failed";
  finishReason: string | null;
  streamed: boolean;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: bigint;
  /** The whole duration as the client saw it, in milliseconds. */
  latencyMs: number;
  /** Milliseconds to the first content of a stream; null for whole answers. */
  firstTokenMs: number | null;
  attempts: readonly AttemptRecord[];
  detail: GenerationDetail;
}

/** The explanation of a charge. It is kept as JSON and read one record at a time. */
export interface GenerationDetail {
  usage: Record<string, number | undefined>;
  usageEstimated?: true;
  usageClamped?: true;
  /** The size and quality of the pictures that were made. */
  picture?: PictureKind;
  upstreamCostUsd?: number;
  priceVersion: string | null;
  price: Record<string, string> | null;
  holdNanoUsd: string;
  /** The hold that was charged, of which transfers have their ids; absent where it has the record's. */
  chargeId?: string;
  /**
   * The output cap that the provider was given in place of a larger one that the caller could not
   * afford.
   */
  outputCap?: number;
  /** `batch` where the provider's own batch served it, at the price of batches. */
  serviceTier?: "batch";
  /** The tokens by which the provider passed its output cap, and their price; absent where it kept it. */
  tokensPastCap?: number;
  nanoUsdPastCap?: string;
  uncollectedNanoUsd?: string;
  /** Absent where the platform's own credential served. */
  credentialSource?: string;
  /** The `byok_` id of the caller's own key that served. */
  providerKeyId?: string;
  /**
   * The reason for the chosen route, and the rules that excluded the others; absent where there was
   * no choice.
   */
  routing?: { order: readonly string[]; leftOut?: readonly string[] };
  /**
   * The parts that the translation to the upstream's dialect dropped or changed; absent where there
   * were none.
   */
  translationLosses?: readonly { field: string; reason: string }[];
  origin?: string;
  appTitle?: string;
  /**
   * The caller's own id of its end user, and the program that sent the request; not kept under zero
   * data retention.
   */
  externalUser?: string;
  /** The id of the team of its key. */
  team?: string;
  /** The customer whose plan counts the request, and the price that it is counted at. */
  customer?: string;
  customerPriceNanoUsd?: string;
  userAgent?: string;
  /** The members of its metadata, likewise. */
  tags?: Readonly<Record<string, string>>;
  /** The `prs_` id of the preset that was named as the model; not kept for background responses. */
  presetId?: string;
  sessionId?: string;
  /** The batch whose line the request was, as its client knows it: `batch_` or `msgbatch_`. */
  batchId?: string;
  traceParent?: string;
  trace?: unknown;
  /**
   * The `gen_` id of the request that this tool call, or this later round of the model, belongs to.
   */
  calledBy?: string;
  /** The error of a failed request, without its message, which may repeat the prompt. */
  error?: { code: string; status: number };
}

const inserted = recordInsert<GenerationTables["generations"], GenerationRecord>({
  name: "generation",
  table: "generations",
  columns: {
    id: ({ id }) => id,
    created_at_ms: ({ createdAtMs }) => createdAtMs,
    workspace_id: ({ workspaceId }) => workspaceId,
    key_id: ({ keyId }) => keyId,
    surface: ({ surface }) => surface,
    requested_model: ({ requestedModel }) => requestedModel,
    model: ({ model }) => model,
    provider: ({ provider }) => provider,
    upstream_model: ({ upstreamModel }) => upstreamModel,
    upstream_id: ({ upstreamId }) => upstreamId,
    status: ({ status }) => status,
    finish_reason: ({ finishReason }) => finishReason,
    streamed: ({ streamed }) => (streamed ? 1 : 0),
    prompt_tokens: ({ promptTokens }) => promptTokens,
    completion_tokens: ({ completionTokens }) => completionTokens,
    cost_nano: ({ costNanoUsd }) => Number(costNanoUsd),
    latency_ms: ({ latencyMs }) => latencyMs,
    first_token_ms: ({ firstTokenMs }) => firstTokenMs,
    detail: (record) => detailText(record),
  },
});

/** The insert of generation records: one for each request that was served, failed or cancelled. */
export const generationInsert = inserted.statement;

/** Returns the row of a record, to be committed together with its charge. */
export const generationRow = inserted.rowOf;

/** Returns whether the attempts say no more than the record's own columns. */
const isPlain = (attempts: readonly AttemptRecord[]): boolean =>
  attempts.length === 1 && attempts[0]?.outcome === "served" && attempts[0].status === 200;

/**
 * Returns the detail as it is stored. A single attempt that served is omitted, since the columns
 * describe it.
 */
const detailText = ({ attempts, detail }: GenerationRecord): string =>
  JSON.stringify(isPlain(attempts) ? detail : { ...detail, attempts });

/**
 * Returns the attempts of a stored record: those that were written, or the single one that the
 * columns describe.
 */
function storedAttempts(
  written: readonly AttemptRecord[] | undefined,
  columns: Pick<GenerationRecord, "provider" | "model" | "upstreamModel" | "latencyMs">,
): readonly AttemptRecord[] {
  return (
    written ?? [
      {
        provider: columns.provider,
        model: columns.model,
        upstreamModel: columns.upstreamModel,
        status: 200,
        outcome: "served",
        reason: null,
        durationMs: columns.latencyMs,
      },
    ]
  );
}

/** The outcome of an attempt, which counts for or against its provider. */
type AttemptOutcome =
  | "served"
  /**
   * The provider did not do what it offers: 404, 410, 5xx, no or a garbled answer, a cut stream, a
   * timeout.
   */
  | "outage"
  /** The provider limits its callers (429): no outage, but a reason to try another one first. */
  | "rationed"
  /**
   * A refused credential or request, or a client that left: says nothing about the provider's
   * health.
   */
  | "neutral";

/**
 * Judges a finished attempt as the health snapshot counts it (contract, "Health snapshot": only
 * genuine platform outages are errors, never key-permission failures).
 */
export function outcomeOf({ outcome, reason, status }: AttemptRecord): AttemptOutcome {
  if (outcome === "served") return "served";
  if (outcome === "cancelled" || reason === "credential_error") return "neutral";
  if (reason === "rate_limited") return "rationed";
  if (reason === "timeout" || reason === "model_unavailable" || status === 410) return "outage";
  // Below 400 it is a success that failed later, such as a cut stream; without a status there was
  // no answer.
  return status === null || status < 400 || status >= 500 ? "outage" : "neutral";
}

/** Returns whether an attempt failed by the provider's own fault. */
export const isOutage = (attempt: AttemptRecord): boolean => outcomeOf(attempt) === "outage";

/** The table of generation records. `detail` is JSON of what no query filters by. */
export interface GenerationTables {
  generations: {
    id: string;
    created_at_ms: number;
    workspace_id: string;
    key_id: string;
    surface: string;
    requested_model: string;
    model: string;
    provider: string;
    upstream_model: string;
    upstream_id: string | null;
    status: string;
    finish_reason: string | null;
    streamed: number;
    prompt_tokens: number;
    completion_tokens: number;
    cost_nano: number | bigint;
    latency_ms: number;
    first_token_ms: number | null;
    detail: string;
  };
}

/**
 * Returns the `gen_` id for any form of a request's id: generation id, trace id or the id in a
 * response body.
 */
export function generationIdOf(id: string): string {
  // Prefixes end with `_` or `-`, as in their dialects: `resp_`, `chatcmpl-`, `embd-`.
  return `gen_${id.slice(Math.max(id.lastIndexOf("_"), id.lastIndexOf("-")) + 1)}`;
}

/** Matches generation ids. No record has any other id, so it need not be looked up. */
export const generationIdPattern = /^gen_[0-9a-f]{32}$/;

/** Returns the next id; undefined for what is not an id of a record. */
export const idAfter = (id: string): string | undefined =>
  generationIdPattern.test(id)
    ? `gen_${(BigInt(`0x${id.slice("gen_".length)}`) + 1n).toString(16).padStart(32, "0")}`
    : undefined;

/** Returns the lowest possible id of a request at a wall time. The primary key orders by id. */
export const lowestIdAt = (atMs: number): string => lowestId("gen", atMs);

/** Returns the wall time that an id begins with. */
export const timeOfId = (id: string): number =>
  Number.parseInt(id.slice("gen_".length, "gen_".length + 12), 16);

/** A call of one provider that is charged by itself and has no tokens, such as of a tool. */
interface SingleCall
  extends Pick<
    GenerationRecord,
    | "id"
    | "workspaceId"
    | "keyId"
    | "surface"
    | "model"
    | "provider"
    | "upstreamModel"
    | "costNanoUsd"
    | "latencyMs"
    | "detail"
  > {
  status: AttemptRecord["outcome"];
  /** The HTTP status of the provider; null when none came. */
  upstreamStatus: number | null;
  credentialSource?: string | undefined;
}

/** Returns the record of a call that has one attempt. */
export function singleCallRecord({
  status: outcome,
  upstreamStatus,
  credentialSource,
  ...call
}: SingleCall): GenerationRecord {
  return {
    ...call,
    createdAtMs: timeOfId(call.id),
    requestedModel: call.model,
    upstreamId: null,
    status: outcome === "served" ? "completed" : outcome,
    finishReason: null,
    streamed: false,
    promptTokens: 0,
    completionTokens: 0,
    firstTokenMs: null,
    attempts: [
      {
        provider: call.provider,
        model: call.model,
        upstreamModel: call.upstreamModel,
        status: upstreamStatus,
        outcome,
        reason: outcome === "failed" ? "upstream_error" : null,
        durationMs: call.latencyMs,
        ...(credentialSource !== undefined && { credentialSource }),
      },
    ],
  };
}

/** Returns the record of a row. */
export function recordOfRow(row: GenerationTables["generations"]): GenerationRecord {
  const { attempts, ...detail } = JSON.parse(row.detail) as GenerationDetail & {
    attempts?: AttemptRecord[];
  };
  return {
    id: row.id,
    createdAtMs: row.created_at_ms,
    workspaceId: row.workspace_id,
    keyId: row.key_id,
    surface: row.surface,
    requestedModel: row.requested_model,
    model: row.model,
    provider: row.provider,
    upstreamModel: row.upstream_model,
    upstreamId: row.upstream_id,
    status: row.status as GenerationRecord["status"],
    finishReason: row.finish_reason,
    streamed: row.streamed === 1,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    costNanoUsd: BigInt(row.cost_nano),
    latencyMs: row.latency_ms,
    firstTokenMs: row.first_token_ms,
    attempts: storedAttempts(attempts, {
      provider: row.provider,
      model: row.model,
      upstreamModel: row.upstream_model,
      latencyMs: row.latency_ms,
    }),
    detail,
  };
}

/** The records, with the queue that writes them, for classes that read them. */
export interface RecordSource<Tables extends GenerationTables = GenerationTables> {
  database: Kysely<Tables>;
  commits: CommitQueue;
  kind: StorageKind;
}
