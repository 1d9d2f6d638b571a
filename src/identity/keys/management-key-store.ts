import type { Kysely } from "kysely";
import { isScope, type Scope } from "./scopes.ts";
import type { ManagementKey } from "./management-keys.ts";

interface ManagementKeyRow {
  id: string;
  hash: string;
  workspace_id: string;
  name: string;
  description: string | null;
  scopes: string;
  label: string;
  created_at_ms: number;
  expires_at_ms: number | null;
  revoked_at_ms: number | null;
  revocation_reason: string | null;
  creator_user_id: string | null;
}

/** The table of management keys. */
export interface ManagementKeyTables {
  management_keys: ManagementKeyRow;
}

const fromRow = (row: ManagementKeyRow): ManagementKey => ({
  id: row.id,
  hash: row.hash,
  workspaceId: row.workspace_id,
  name: row.name,
  description: row.description,
  scopes: (JSON.parse(row.scopes) as string[]).filter(isScope),
  label: row.label,
  createdAtMs: row.created_at_ms,
  expiresAtMs: row.expires_at_ms,
  revokedAtMs: row.revoked_at_ms,
  revocationReason: row.revocation_reason,
  creatorUserId: row.creator_user_id,
});

/** Stores management keys. */
export class ManagementKeyStore {
  constructor(private readonly database: Kysely<ManagementKeyTables>) {}

  /** Returns every key of all workspaces that was not revoked. */
  async loadAll(): Promise<ManagementKey[]> {
    const rows = await this.database
      .selectFrom("management_keys")
      .selectAll()
      .where("revoked_at_ms", "is", null)
      .execute();
    return rows.map(fromRow);
  }

  /** Returns whether a key with this hash was ever created, revoked or not. */
  async exists(hash: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("management_keys")
      .select("id")
      .where("hash", "=", hash)
      .executeTakeFirst();
    return row !== undefined;
  }

  async insert(key: ManagementKey): Promise<void> {
    await this.database
      .insertInto("management_keys")
      .values({
        id: key.id,
        hash: key.hash,
        workspace_id: key.workspaceId,
        name: key.name,
        description: key.description,
        scopes: JSON.stringify(key.scopes),
        label: key.label,
        created_at_ms: key.createdAtMs,
        expires_at_ms: key.expiresAtMs,
        revoked_at_ms: key.revokedAtMs,
        revocation_reason: key.revocationReason,
        creator_user_id: key.creatorUserId,
      })
      .execute();
  }

  /**
   * Returns the keys of one workspace, newest first. Revoked ones and those that expired before
   * `nowMs` are included only on request.
   */
  async list(
    workspaceId: string,
    { includeInvalid, nowMs }: { includeInvalid: boolean; nowMs: number },
  ): Promise<ManagementKey[]> {
    let query = this.database
      .selectFrom("management_keys")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (!includeInvalid) {
      query = query
        .where("revoked_at_ms", "is", null)
        .where((where) =>
          where.or([where("expires_at_ms", "is", null), where("expires_at_ms", ">", nowMs)]),
        );
    }
    const rows = await query.orderBy("created_at_ms", "desc").orderBy("id", "desc").execute();
    return rows.map(fromRow);
  }

  /** Replaces the scopes of an unrevoked key. Returns false when there is none with this id. */
  async setScopes(id: string, scopes: readonly Scope[]): Promise<boolean> {
    const row = await this.database
      .updateTable("management_keys")
      .set({ scopes: JSON.stringify(scopes) })
      .where("id", "=", id)
      .where("revoked_at_ms", "is", null)
      .returning("id")
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Revokes a key of a workspace. Returns false when it has no unrevoked key with this id. */
  async revoke({
    workspaceId,
    id,
    reason,
    nowMs,
  }: {
    workspaceId: string;
    id: string;
    reason: string | null;
    nowMs: number;
  }): Promise<boolean> {
    const row = await this.database
      .updateTable("management_keys")
      .set({ revoked_at_ms: nowMs, revocation_reason: reason })
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .where("revoked_at_ms", "is", null)
      .returning("id")
      .executeTakeFirst();
    return row !== undefined;
  }
}
