import { lowestId } from "../platform/kernel/ids.ts";
import { recordInsert, type CommitQueue } from "../platform/storage/commit-queue.ts";
import type { Kysely } from "kysely";

/** One try at one provider, as it is kept and shown. */
export interface AttemptRecord {
  provider: string;
  model: string;
  upstreamModel: string;
  /** HTTP status of the upstream; null when none came. */
  status: number | null;
  outcome: "served" | "failed" | "cancelled";
  /** Why the next candidate was tried, in the contract's fallback reasons; null when it served. */
  reason: string | null;
  durationMs: number;
  /** Whose credential was used, such as `own_byok`; absent where it was the platform's own. */
  credentialSource?: string;
}

/** Everything that is kept of one inference request; never its prompt or its answer. */
export interface GenerationRecord {
  /** `gen_` id; its digits are the trace id. */
  id: string;
  createdAtMs: number;
  workspaceId: string;
  keyId: string;
  surface: string;
  requestedModel: string;
  model: string;
  /** The provider that served or was tried last; empty where none was asked. */
  provider: string;
  upstreamModel: string;
  upstreamId: string | null;
  /**
   * `cached` is answered without asking a provider, `failed` by no provider; neither costs
   * anything.
   */
  status: "completed" | "cut" | "cancelled" | "cached" | "failed";
  finishReason: string | null;
  streamed: boolean;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: bigint;
  /** Whole duration as the client saw it, in milliseconds. */
  latencyMs: number;
  /** Until the first content of a stream, in milliseconds; null for whole answers. */
  firstTokenMs: number | null;
  attempts: readonly AttemptRecord[];
  detail: GenerationDetail;
}

/** What explains a charge; kept as JSON, read one record at a time. */
export interface GenerationDetail {
  usage: Record<string, number | undefined>;
  usageEstimated?: true;
  usageClamped?: true;
  upstreamCostUsd?: number;
  priceVersion: string | null;
  price: Record<string, string> | null;
  holdNanoUsd: string;
  /**
   * The most output tokens that the caller could bear, where the provider was given that in place
   * of a larger cap.
   */
  outputCap?: number;
  uncollectedNanoUsd?: string;
  /** Absent where the platform's own credential served. */
  credentialSource?: string;
  /** `byok_` id of the caller's own key that served. */
  providerKeyId?: string;
  /**
   * Why the route was chosen, and what the others were left out by; absent where there was no
   * choice.
   */
  routing?: { order: readonly string[]; leftOut?: readonly string[] };
  /**
   * What the translation to the upstream's dialect dropped or changed; absent where nothing was.
   */
  translationLosses?: readonly { field: string; reason: string }[];
  origin?: string;
  appTitle?: string;
  /** `prs_` id of the preset that was named as the model; of background responses none is kept. */
  presetId?: string;
  sessionId?: string;
  traceParent?: string;
  trace?: unknown;
  /** What a failed request was answered with; never its message, which may repeat the prompt. */
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

/** Generation records, one a request that was served, failed or cancelled. */
export const generationInsert = inserted.statement;

/** The row of a record, to be committed together with its charge. */
export const generationRow = inserted.rowOf;

/** Whether the attempts say no more than the record's own columns do. */
const isPlain = (attempts: readonly AttemptRecord[]): boolean =>
  attempts.length === 1 && attempts[0]?.outcome === "served" && attempts[0].status === 200;

/**
 * The detail as it is stored. A single attempt that served is not written: the columns say it all.
 */
const detailText = ({ attempts, detail }: GenerationRecord): string =>
  JSON.stringify(isPlain(attempts) ? detail : { ...detail, attempts });

/**
 * Attempts of a stored record: those that were written, or the single one that the columns
 * describe.
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

/** What an attempt says of its provider. */
type AttemptOutcome =
  | "served"
  /**
   * The provider did not do what it offers: 404, 410, 5xx, no or a garbled answer, a cut stream, a
   * timeout.
   */
  | "outage"
  /** The provider rations its callers (429): no outage, but a reason to ask another one first. */
  | "rationed"
  /**
   * A refused credential or request, or a client that left: says nothing of the provider's health.
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
  // Below 400 it is a success that came to nothing, such as a cut stream; without a status nothing
  // came at all.
  return status === null || status < 400 || status >= 500 ? "outage" : "neutral";
}

/** Whether an attempt failed by the provider's own fault. */
export const isOutage = (attempt: AttemptRecord): boolean => outcomeOf(attempt) === "outage";

/** Table of generation records; `detail` is JSON of what no query filters by. */
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
 * Returns the `gen_` id that any form of a request's id means: generation id, trace id or the id
 * in a response body.
 */
export function generationIdOf(id: string): string {
  // Prefixes end with `_` or `-`, after the customs of their dialects: `resp_`, `chatcmpl-`,
  // `embd-`.
  return `gen_${id.slice(Math.max(id.lastIndexOf("_"), id.lastIndexOf("-")) + 1)}`;
}

/** What every generation id looks like; anything else is no record's, and need not be asked for. */
const generationIdPattern = /^gen_[0-9a-f]{32}$/;

/** The id that follows one; undefined for what is no id of a record. */
export const idAfter = (id: string): string | undefined =>
  generationIdPattern.test(id)
    ? `gen_${(BigInt(`0x${id.slice("gen_".length)}`) + 1n).toString(16).padStart(32, "0")}`
    : undefined;

/** The lowest id that a request of a wall time can have; the primary key orders by it. */
export const lowestIdAt = (atMs: number): string => lowestId("gen", atMs);

/** The wall time that an id begins with. */
export const timeOfId = (id: string): number =>
  Number.parseInt(id.slice("gen_".length, "gen_".length + 12), 16);

/** The record of a row. */
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

/** Reads of generation records; they are written through the commit queue only. */
export class GenerationStore {
  private readonly database: Kysely<GenerationTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<GenerationTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** A record of the workspace by any form of its id; undefined when the workspace has none. */
  async find(workspaceId: string, id: string): Promise<GenerationRecord | undefined> {
    const generationId = generationIdOf(id);
    if (!generationIdPattern.test(generationId)) return undefined;
    // Free requests do not wait for their row, so a client may ask for it before it is written.
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const row = await this.database
      .selectFrom("generations")
      .selectAll()
      .where("id", "=", generationId)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && recordOfRow(row);
  }

  /**
   * Deletes at most `limit` records of a workspace that are older than a wall time, oldest first,
   * and tells how many went. Ids begin with the time, so the primary key finds them.
   */
  async deleteBefore({
    workspaceId,
    beforeMs,
    limit,
  }: {
    workspaceId: string;
    beforeMs: number;
    limit: number;
  }): Promise<number> {
    const oldestKept = lowestIdAt(beforeMs);
    const oldest = await this.database
      .selectFrom("generations")
      .select("id")
      .where("workspace_id", "=", workspaceId)
      .where("id", "<", oldestKept)
      .orderBy("id")
      .limit(limit)
      .execute();
    const last = oldest.at(-1);
    if (last === undefined) return 0;
    await this.database
      .deleteFrom("generations")
      .where("workspace_id", "=", workspaceId)
      .where("id", "<=", last.id)
      .execute();
    return oldest.length;
  }
}
