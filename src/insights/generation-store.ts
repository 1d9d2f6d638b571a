import type { Kysely } from "kysely";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import {
  storedAttempts,
  type AttemptRecord,
  type GenerationDetail,
  type GenerationRecord,
} from "./generation-record.ts";

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

/**
 * The lowest id that a request of a wall time can have. Ids begin with the time, so the primary key
 * orders by it.
 */
export const lowestIdAt = (atMs: number): string =>
  `gen_${Math.max(0, Math.floor(atMs)).toString(16).padStart(12, "0")}`;

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
