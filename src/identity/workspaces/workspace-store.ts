import type { Kysely } from "kysely";
import { assert } from "../../platform/kernel/assert.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";

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
interface WorkspaceChanges {
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
  private readonly database: Kysely<WorkspaceTables>;

  constructor(database: Kysely<WorkspaceTables>) {
    this.database = database;
  }

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

  async setPlan(id: string, plan: PlanId): Promise<void> {
    await this.database.updateTable("workspaces").set({ plan }).where("id", "=", id).execute();
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

/** Changes workspaces, one write of each at a time. A change is in force when it is answered. */
export class WorkspaceEditor {
  private readonly store: WorkspaceStore;
  private readonly directory: CredentialDirectory;
  /** The operator's workspace; it is never blocked. */
  private readonly operatorWorkspaceId: string;
  private readonly nowMs: () => number;
  private readonly mutex = new KeyedMutex();

  constructor(options: {
    store: WorkspaceStore;
    directory: CredentialDirectory;
    operatorWorkspaceId: string;
    nowMs(): number;
  }) {
    this.store = options.store;
    this.directory = options.directory;
    this.operatorWorkspaceId = options.operatorWorkspaceId;
    this.nowMs = options.nowMs;
  }

  /** Returns a workspace. Throws `not_found`. */
  find(id: string): Workspace {
    const workspace = this.directory.workspace(id);
    if (workspace === undefined)
      throw new GatewayError("not_found", `There is no workspace ${id}.`);
    return workspace;
  }

  /**
   * Renames a workspace, changes its plan, blocks or unblocks it. Throws `not_found`, and
   * `conflict` for blocking a workspace that follows its owner.
   */
  change(id: string, changes: WorkspaceChanges): Promise<Workspace> {
    return this.mutex.run(id, async () => {
      if (changes.blocked !== undefined) this.assertBlockable(this.find(id));
      await this.store.change(id, { changes, nowMs: this.nowMs() });
      const { blocked: wasBlocked, ...workspace } = this.find(id);
      const {
        name = workspace.name,
        plan = workspace.plan,
        blocked = wasBlocked === true,
      } = changes;
      const changed: Workspace = {
        ...workspace,
        name,
        plan,
        ...(blocked ? { blocked: true } : {}),
      };
      this.directory.putWorkspace(changed);
      return changed;
    });
  }

  private assertBlockable({ id, organizationId }: Workspace): void {
    if (id !== this.operatorWorkspaceId && organizationId !== undefined) return;
    const why =
      id === this.operatorWorkspaceId
        ? "This is the operator's workspace."
        : "A personal workspace follows its owner. Block the user.";
    throw new GatewayError("conflict", why, { param: "blocked" });
  }
}
