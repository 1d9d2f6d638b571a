import type { Kysely } from "kysely";
import type { LimitReset, LlmKey } from "./llm-key.ts";

interface LlmKeyRow {
  id: string;
  hash: string;
  workspace_id: string;
  name: string;
  label: string;
  created_at_ms: number;
  updated_at_ms: number | null;
  expires_at_ms: number | null;
  disabled: number;
  deleted_at_ms: number | null;
  limit_nano: number | bigint | null;
  limit_reset: LimitReset;
  include_byok_in_limit: number;
  rate_limit_per_minute: number | null;
  tokens_per_minute: number | null;
  allowed_models: string | null;
  allowed_endpoints: string | null;
  creator_user_id: string;
}

export interface LlmKeyTables {
  llm_keys: LlmKeyRow;
}

const textList = (value: string | null): readonly string[] | null =>
  value === null ? null : (JSON.parse(value) as string[]);

const listText = (value: readonly string[] | null): string | null => (value === null ? null : JSON.stringify(value));

const fromRow = (row: LlmKeyRow): LlmKey => ({
  id: row.id,
  hash: row.hash,
  workspaceId: row.workspace_id,
  name: row.name,
  label: row.label,
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
  expiresAtMs: row.expires_at_ms,
  disabled: row.disabled === 1,
  limitNanoUsd: row.limit_nano === null ? null : BigInt(row.limit_nano),
  limitReset: row.limit_reset,
  includeByokInLimit: row.include_byok_in_limit === 1,
  rateLimitPerMinute: row.rate_limit_per_minute,
  tokensPerMinute: row.tokens_per_minute,
  allowedModels: textList(row.allowed_models),
  allowedEndpoints: textList(row.allowed_endpoints),
  creatorUserId: row.creator_user_id,
});

/** LLM keys at rest. Deleted keys stay as rows, so that old charges can still be explained. */
export class LlmKeyStore {
  private readonly database: Kysely<LlmKeyTables>;

  constructor(database: Kysely<LlmKeyTables>) {
    this.database = database;
  }

  /** Every key that was not deleted, of all workspaces: what the directory is filled from. */
  async loadAll(): Promise<LlmKey[]> {
    const rows = await this.database.selectFrom("llm_keys").selectAll().where("deleted_at_ms", "is", null).execute();
    return rows.map(fromRow);
  }

  /** The keys of one workspace, newest first. */
  async list(workspaceId: string, options: { includeDisabled: boolean }): Promise<LlmKey[]> {
    let query = this.database.selectFrom("llm_keys").selectAll()
      .where("workspace_id", "=", workspaceId).where("deleted_at_ms", "is", null);
    if (!options.includeDisabled) query = query.where("disabled", "=", 0);
    const rows = await query.orderBy("created_at_ms", "desc").orderBy("id", "desc").execute();
    return rows.map(fromRow);
  }

  /** Whether a key with this hash was ever made, deleted or not. */
  async exists(hash: string): Promise<boolean> {
    const row = await this.database.selectFrom("llm_keys").select("id").where("hash", "=", hash).executeTakeFirst();
    return row !== undefined;
  }

  /** Whether any key was ever made, deleted or not. */
  async wereAnyMade(): Promise<boolean> {
    return (await this.database.selectFrom("llm_keys").select("id").limit(1).executeTakeFirst()) !== undefined;
  }

  async insert(key: LlmKey): Promise<void> {
    await this.database.insertInto("llm_keys").values({
      id: key.id,
      hash: key.hash,
      workspace_id: key.workspaceId,
      name: key.name,
      label: key.label,
      created_at_ms: key.createdAtMs,
      updated_at_ms: key.updatedAtMs,
      expires_at_ms: key.expiresAtMs,
      disabled: key.disabled ? 1 : 0,
      deleted_at_ms: null,
      limit_nano: key.limitNanoUsd === null ? null : Number(key.limitNanoUsd),
      limit_reset: key.limitReset,
      include_byok_in_limit: key.includeByokInLimit ? 1 : 0,
      rate_limit_per_minute: key.rateLimitPerMinute,
      tokens_per_minute: key.tokensPerMinute,
      allowed_models: listText(key.allowedModels),
      allowed_endpoints: listText(key.allowedEndpoints),
      creator_user_id: key.creatorUserId,
    }).execute();
  }
}
