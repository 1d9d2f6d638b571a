import type { Kysely } from "kysely";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import { isScope, type Scope } from "./scopes.ts";
import type { ManagementKey } from "./management-keys.ts";

/** The table of management keys. */
export interface ManagementKeyTables {
  management_keys: RowOf<ManagementKey>;
}

const columns = recordColumns<ManagementKey>({
  id: "plain",
  hash: "plain",
  workspaceId: "plain",
  name: "plain",
  description: "plain",
  scopes: "json",
  label: "plain",
  createdAtMs: "plain",
  expiresAtMs: "plain",
  revokedAtMs: "plain",
  revocationReason: "plain",
  creatorUserId: "plain",
});

/** Scopes of other releases are left out. */
function fromRow(row: ManagementKeyTables["management_keys"]): ManagementKey {
  const key = columns.fromRow(row);
  return { ...key, scopes: key.scopes.filter(isScope) };
}

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
    await this.database.insertInto("management_keys").values(columns.rowOf(key)).execute();
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
