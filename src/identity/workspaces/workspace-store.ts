import type { Kysely } from "kysely";
import { assert } from "../../platform/kernel/assert.ts";

/** The owner of keys, balances and records. Nothing is ever shared between two workspaces. */
export interface Workspace {
  /** A `ws_` id. */
  id: string;
  name: string;
  plan: PlanId;
  createdAtMs: number;
  /**
   * The user whose personal workspace it is; absent for those of organisations, and for the first
   * one until it is claimed.
   */
  ownerUserId?: string;
  /** The organisation that it belongs to, if any. */
  organizationId?: string;
  /** Whether its owner is blocked or it was closed, so that none of its credentials is admitted. */
  blocked?: true;
}

/** The plans of workspaces, by their wire ids. */
export const planIds = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"] as const;

/** The id of a workspace's tariff, such as `pro`. */
export type PlanId = (typeof planIds)[number];

/** Returns whether a text names a plan of the contract. */
const isPlanId = (value: string): value is PlanId => (planIds as readonly string[]).includes(value);

interface WorkspaceRow {
  id: string;
  name: string;
  plan: string;
  created_at_ms: number;
  owner_user_id: string | null;
  organization_id: string | null;
  blocked_at_ms: number | null;
}

/** The fields of a workspace that may be changed; absent ones stay as they are. */
export interface WorkspaceChanges {
  name?: string | undefined;
  plan?: PlanId | undefined;
  /** Whether its credentials are refused. */
  blocked?: boolean | undefined;
}

/** The table of workspaces. */
export interface WorkspaceTables {
  workspaces: WorkspaceRow;
}

function fromRow(row: WorkspaceRow): Workspace {
  assert(isPlanId(row.plan), `workspace ${row.id} has the unknown plan ${row.plan}`);
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    createdAtMs: row.created_at_ms,
    ...(row.owner_user_id === null ? {} : { ownerUserId: row.owner_user_id }),
    ...(row.organization_id === null ? {} : { organizationId: row.organization_id }),
    ...(row.blocked_at_ms === null ? {} : { blocked: true }),
  };
}

/** Returns the row of a workspace, to be written together with other rows. */
export const workspaceRow = (workspace: Workspace): WorkspaceRow => ({
  id: workspace.id,
  name: workspace.name,
  plan: workspace.plan,
  created_at_ms: workspace.createdAtMs,
  owner_user_id: workspace.ownerUserId ?? null,
  organization_id: workspace.organizationId ?? null,
  blocked_at_ms: null,
});

/** Stores workspaces. */
export class WorkspaceStore {
  constructor(private readonly database: Kysely<WorkspaceTables>) {}

  /** Returns all workspaces, the first one first. */
  async loadAll(): Promise<Workspace[]> {
    const rows = await this.database
      .selectFrom("workspaces")
      .selectAll()
      .orderBy("created_at_ms")
      .orderBy("id")
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the workspace with this id; undefined when there is none. */
  async find(id: string): Promise<Workspace | undefined> {
    const row = await this.database
      .selectFrom("workspaces")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async insert(workspace: Workspace): Promise<void> {
    await this.database.insertInto("workspaces").values(workspaceRow(workspace)).execute();
  }

  /** Writes the changed fields. */
  async change(
    id: string,
    { changes: { name, plan, blocked }, nowMs }: { changes: WorkspaceChanges; nowMs: number },
  ): Promise<void> {
    const values = {
      ...(name === undefined ? {} : { name }),
      ...(plan === undefined ? {} : { plan }),
      ...(blocked === undefined ? {} : { blocked_at_ms: blocked ? nowMs : null }),
    };
    if (Object.keys(values).length > 0)
      await this.database.updateTable("workspaces").set(values).where("id", "=", id).execute();
  }
}
