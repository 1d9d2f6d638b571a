import type { Kysely } from "kysely";

/** A stored data key of a workspace, wrapped by a master key. */
export interface WrappedDataKey {
  /** The hexadecimal id that sealed texts name. */
  id: string;
  workspaceId: string;
  /** The wrapped key in the form that `seal` writes. */
  wrapped: string;
}

/** Rows of data keys. */
export interface DataKeyTables {
  workspace_data_keys: { id: string; workspace_id: string; wrapped: string; created_at_ms: number };
}

/** Stores data keys, one for each workspace. */
export class DataKeyStore {
  constructor(private readonly database: Kysely<DataKeyTables>) {}

  async loadAll(): Promise<WrappedDataKey[]> {
    const rows = await this.database.selectFrom("workspace_data_keys").selectAll().execute();
    return rows.map(({ id, workspace_id: workspaceId, wrapped }) => ({ id, workspaceId, wrapped }));
  }

  /** Returns a workspace's data key; undefined where it has none. */
  async find(workspaceId: string): Promise<WrappedDataKey | undefined> {
    const row = await this.database
      .selectFrom("workspace_data_keys")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && { id: row.id, workspaceId, wrapped: row.wrapped };
  }

  async insert({ id, workspaceId, wrapped }: WrappedDataKey, nowMs: number): Promise<void> {
    await this.database
      .insertInto("workspace_data_keys")
      .values({ id, workspace_id: workspaceId, wrapped, created_at_ms: nowMs })
      .execute();
  }

  /** Replaces the wrapped form of a data key, unless another process has done so meanwhile. */
  async rewrap(id: string, { from, to }: { from: string; to: string }): Promise<void> {
    await this.database
      .updateTable("workspace_data_keys")
      .set({ wrapped: to })
      .where("id", "=", id)
      .where("wrapped", "=", from)
      .execute();
  }
}
