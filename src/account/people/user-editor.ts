import type { Kysely } from "kysely";
import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { Turns } from "../turns.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import type { PeopleTables } from "./people-tables.ts";
import type { SessionStore } from "./session-store.ts";
import type { UserRecord, UserStore } from "./user-store.ts";

/** What operators may change of a user. */
export interface UserChanges {
  operator?: boolean | undefined;
  blocked?: boolean | undefined;
}

/** How many credentials a workspace lost when it was closed. */
export interface ClosedWorkspace {
  workspaceId: string;
  llmKeys: number;
  managementKeys: number;
  providerKeys: number;
}

/** What operators' changes of users are built from. */
export interface UserEditorOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  users: UserStore;
  sessions: SessionStore;
  /** The workspace of whoever runs the service; it is never closed. */
  operatorWorkspaceId: string;
  workspace(id: string): Workspace | undefined;
  putWorkspace(workspace: Workspace): void;
  /** Takes every credential of a workspace away. */
  revokeCredentials(workspaceId: string): Promise<Omit<ClosedWorkspace, "workspaceId">>;
}

const noUser = (): GatewayError => new GatewayError("not_found", "There is no user with this id. GET /admin/users lists them.");
const conflict = (message: string, param?: string): GatewayError =>
  new GatewayError("conflict", message, param === undefined ? {} : { param });

/** Blocks, deletes and promotes users. Changes happen one after the other, so that two operators cannot unmake each other at once. */
export class UserEditor {
  private readonly options: UserEditorOptions;
  private readonly turns = new Turns();

  constructor(options: UserEditorOptions) {
    this.options = options;
  }

  /** Throws `not_found`. */
  async find(id: string): Promise<UserRecord> {
    const user = await this.options.users.find(id);
    if (user === undefined) throw noUser();
    return user;
  }

  /**
   * Makes or unmakes an operator, blocks or lets in; in force with the next request. `by` is the operator who asks. Throws
   * `not_found`, and `conflict` where no operator would be left, or somebody shuts themselves out.
   */
  change(id: string, { operator, blocked }: UserChanges, by: string): Promise<UserRecord> {
    return this.turns.run("users", async () => {
      const user = await this.find(id);
      if (blocked === true && id === by) throw conflict("You cannot block yourself.", "blocked");
      const staysOne = (operator ?? user.operator) && !(blocked ?? user.blockedAtMs !== null);
      if (!staysOne) await this.assertOtherOperator(user);
      if (operator !== undefined) await this.write(id, { operator: operator ? 1 : 0 });
      if (blocked !== undefined) await this.setBlocked(user, blocked);
      return this.find(id);
    });
  }

  /**
   * Deletes a user: sessions, ways to sign in and memberships with them; the personal workspace, and organisations that have
   * nobody else, are closed, their credentials revoked. Throws `not_found`, and `conflict` for the last operator, for
   * oneself, and for the only owner of an organisation with other members.
   */
  remove(id: string, by: string): Promise<ClosedWorkspace[]> {
    return this.turns.run("users", async () => {
      const user = await this.find(id);
      if (id === by) throw conflict("You cannot delete yourself. Another operator can.");
      await this.assertOtherOperator(user);
      const abandoned = await this.abandonedBy(id);
      // Shut out first: what a crash leaves undone, a second deletion does.
      await this.setBlocked(user, true);
      const closed: ClosedWorkspace[] = [];
      for (const workspaceId of [user.workspaceId, ...abandoned]) {
        if (workspaceId !== null && workspaceId !== this.options.operatorWorkspaceId) closed.push(await this.close(workspaceId));
      }
      await this.options.database.transaction().execute(async (transaction) => {
        await transaction.updateTable("workspaces").set({ owner_user_id: null }).where("owner_user_id", "=", id).execute();
        await transaction.deleteFrom("users").where("id", "=", id).execute();
      });
      if (user.workspaceId !== null) this.putChanged(user.workspaceId, ({ ownerUserId: _, ...workspace }) => workspace);
      return closed;
    });
  }

  private async write(id: string, values: Partial<PeopleTables["users"]>): Promise<void> {
    await this.options.database.updateTable("users").set(values).where("id", "=", id).execute();
  }

  /** The keys of the personal workspace follow its owner; those of the first workspace are the service's own. */
  private async setBlocked({ id, workspaceId }: UserRecord, blocked: boolean): Promise<void> {
    const { database, clock, sessions, operatorWorkspaceId } = this.options;
    const values = { blocked_at_ms: blocked ? clock.nowMs() : null };
    const follows = workspaceId !== null && workspaceId !== operatorWorkspaceId;
    await database.transaction().execute(async (transaction) => {
      await transaction.updateTable("users").set(values).where("id", "=", id).execute();
      if (follows) await transaction.updateTable("workspaces").set(values).where("id", "=", workspaceId).execute();
    });
    if (follows) this.putChanged(workspaceId, ({ blocked: _, ...workspace }) => (blocked ? { ...workspace, blocked: true } : workspace));
    if (blocked) await sessions.revokeAll(id);
  }

  private async close(workspaceId: string): Promise<ClosedWorkspace> {
    const { database, clock, revokeCredentials } = this.options;
    await database.updateTable("workspaces").set({ blocked_at_ms: clock.nowMs() }).where("id", "=", workspaceId).execute();
    this.putChanged(workspaceId, (workspace) => ({ ...workspace, blocked: true }));
    return { workspaceId, ...await revokeCredentials(workspaceId) };
  }

  private putChanged(id: string, change: (workspace: Workspace) => Workspace): void {
    const workspace = this.options.workspace(id);
    if (workspace !== undefined) this.options.putWorkspace(change(workspace));
  }

  private async assertOtherOperator({ id, operator }: UserRecord): Promise<void> {
    if (!operator) return;
    const other = await this.options.database.selectFrom("users").select("id")
      .where("operator", "=", 1).where("blocked_at_ms", "is", null).where("id", "!=", id).executeTakeFirst();
    if (other === undefined) throw conflict("This is the last operator. Make somebody else one first.", "operator");
  }

  /** Workspaces of organisations that have no member but this one. Throws `conflict` where others would be left without an owner. */
  private async abandonedBy(userId: string): Promise<string[]> {
    const rows = await this.options.database.selectFrom("organization_members as member")
      .innerJoin("organizations as organization", "organization.id", "member.organization_id")
      .innerJoin("workspaces as workspace", "workspace.organization_id", "organization.id")
      .innerJoin("organization_members as other", "other.organization_id", "organization.id")
      .select(["organization.name", "workspace.id as workspaceId", "member.role", "other.user_id as otherId", "other.role as otherRole"])
      .where("member.user_id", "=", userId).execute();
    const alone: string[] = [];
    for (const workspaceId of new Set(rows.map((row) => row.workspaceId))) {
      const own = rows.filter((row) => row.workspaceId === workspaceId);
      const others = own.filter(({ otherId }) => otherId !== userId);
      if (others.length === 0) alone.push(workspaceId);
      else if (own[0]?.role === "owner" && !others.some(({ otherRole }) => otherRole === "owner")) {
        throw conflict(`This user is the only owner of the organisation ${own[0].name}. Its members would be left without one.`);
      }
    }
    return alone;
  }
}
