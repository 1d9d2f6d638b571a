import type { Kysely } from "kysely";
import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";

/** A name of a workspace's own for a model, or for several. */
export interface WorkspaceAlias {
  workspaceId: string;
  /** In lower case; unique within its workspace; never changes. */
  name: string;
  target: AliasTarget;
  description: string | null;
  createdAtMs: number;
  updatedAtMs: number;
}

/** An alias as its own workspace names it. */
export type AliasReference = Pick<WorkspaceAlias, "workspaceId" | "name">;

/** Rows of workspaces' aliases. */
export interface AliasTables {
  workspace_aliases: RowOf<WorkspaceAlias>;
}

/** The fields of an alias that may be changed; absent ones stay as they are. */
export type AliasChanges = {
  [Name in "target" | "description"]?: WorkspaceAlias[Name] | undefined;
};

const { fromRow, rowOf } = recordColumns<WorkspaceAlias>({
  workspaceId: "plain",
  name: "plain",
  target: "json",
  description: "plain",
  createdAtMs: "plain",
  updatedAtMs: "plain",
});

/** Stores workspaces' aliases. */
export class AliasStore {
  constructor(private readonly database: Kysely<AliasTables>) {}

  /** Returns the aliases of a workspace, or of all, oldest first. */
  async list(workspaceId?: string): Promise<WorkspaceAlias[]> {
    let query = this.database.selectFrom("workspace_aliases").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.orderBy("created_at_ms").orderBy("name").execute();
    return rows.map(fromRow);
  }

  /** Stores a new alias. The database refuses a name that its workspace already has. */
  async insert(alias: WorkspaceAlias): Promise<void> {
    await this.database.insertInto("workspace_aliases").values(rowOf(alias)).execute();
  }

  /**
   * Changes the given fields of an alias, and returns it as it is stored then; undefined where it was
   * deleted meanwhile.
   */
  async change(
    { workspaceId, name }: AliasReference,
    { target, description }: AliasChanges,
    nowMs: number,
  ): Promise<WorkspaceAlias | undefined> {
    const row = await this.database
      .updateTable("workspace_aliases")
      .set({
        ...(target !== undefined && { target: JSON.stringify(target) }),
        ...(description !== undefined && { description }),
        updated_at_ms: nowMs,
      })
      .where("workspace_id", "=", workspaceId)
      .where("name", "=", name)
      .returningAll()
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async remove({ workspaceId, name }: AliasReference): Promise<void> {
    await this.database
      .deleteFrom("workspace_aliases")
      .where("workspace_id", "=", workspaceId)
      .where("name", "=", name)
      .execute();
  }
}
