import type { Kysely } from "kysely";
import { assert } from "../../platform/lib/assert.ts";
import { isPlanId } from "./plan.ts";
import type { Workspace } from "./workspace.ts";

interface WorkspaceRow {
  id: string;
  name: string;
  plan: string;
  created_at_ms: number;
}

export interface WorkspaceTables {
  workspaces: WorkspaceRow;
}

function fromRow(row: WorkspaceRow): Workspace {
  assert(isPlanId(row.plan), `workspace ${row.id} has the unknown plan ${row.plan}`);
  return { id: row.id, name: row.name, plan: row.plan, createdAtMs: row.created_at_ms };
}

/** Workspaces at rest. */
export class WorkspaceStore {
  private readonly database: Kysely<WorkspaceTables>;

  constructor(database: Kysely<WorkspaceTables>) {
    this.database = database;
  }

  /** All workspaces, the first one first. */
  async loadAll(): Promise<Workspace[]> {
    const rows = await this.database.selectFrom("workspaces").selectAll().orderBy("created_at_ms").orderBy("id").execute();
    return rows.map(fromRow);
  }

  async insert(workspace: Workspace): Promise<void> {
    await this.database.insertInto("workspaces").values({
      id: workspace.id, name: workspace.name, plan: workspace.plan, created_at_ms: workspace.createdAtMs,
    }).execute();
  }
}
