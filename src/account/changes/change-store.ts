import type { Kysely } from "kysely";

/** Rows of workspaces that were changed. */
export interface ChangeTables {
  changed_workspaces: { workspace_id: string; at_ms: number };
}

/** When each workspace was changed last, as gateways that share the database tell each other. */
export class ChangeStore {
  private readonly database: Kysely<ChangeTables>;

  constructor(database: Kysely<ChangeTables>) {
    this.database = database;
  }

  /** Notes that workspaces were changed at a wall time. */
  async note(workspaceIds: readonly string[], atMs: number): Promise<void> {
    await this.database
      .insertInto("changed_workspaces")
      .values(workspaceIds.map((id) => ({ workspace_id: id, at_ms: atMs })))
      .onConflict((conflict) => conflict.column("workspace_id").doUpdateSet({ at_ms: atMs }))
      .execute();
  }

  /** Workspaces that were changed since a wall time, with the last time of each. */
  async since(atMs: number): Promise<{ workspaceId: string; atMs: number }[]> {
    const rows = await this.database
      .selectFrom("changed_workspaces")
      .selectAll()
      .where("at_ms", ">=", atMs)
      .execute();
    return rows.map((row) => ({ workspaceId: row.workspace_id, atMs: row.at_ms }));
  }
}
