import type { Kysely, Transaction } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { Workspace } from "../workspaces/workspace-store.ts";
import type { SessionStore } from "./sign-in/session-store.ts";
import type { PeopleTables } from "./people-tables.ts";
import type { UserRecord, UserStore } from "./user-store.ts";
import { hasOtherOwner, operatorsOneAtATime, ownersOneAtATime } from "./ownership.ts";

/** The fields of a user that operators may change. */
export interface UserChanges {
  operator?: boolean | undefined;
  blocked?: boolean | undefined;
}

/** A closed workspace, and the number of credentials that were revoked with it. */
export interface ClosedWorkspace {
  workspaceId: string;
  llmKeys: number;
  managementKeys: number;
  providerKeys: number;
}

/** Options of operators' changes of users. */
export interface UserEditorOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  users: UserStore;
  sessions: SessionStore;
  /** The operator's workspace; it is never closed. */
  operatorWorkspaceId: string;
  workspace(id: string): Workspace | undefined;
  putWorkspace(workspace: Workspace): void;
  /** Revokes every credential of a workspace. */
  revokeCredentials(workspaceId: string): Promise<Omit<ClosedWorkspace, "workspaceId">>;
}

const noUser = (): GatewayError =>
  new GatewayError("not_found", "There is no user with this id. GET /admin/users lists them.");
const conflict = (message: string, param?: string): GatewayError =>
  new GatewayError("conflict", message, param === undefined ? {} : { param });

/**
 * Blocks, deletes and promotes users, one change at a time, so that memory holds the last one. Its
 * transactions prevent two operators from demoting each other at once on different gateways.
 */
export class UserEditor {
  private readonly mutex = new KeyedMutex();

  constructor(private readonly options: UserEditorOptions) {}

  /** Returns a user. Throws `not_found`. */
  async find(id: string): Promise<UserRecord> {
    const user = mayBeId(id) ? await this.options.users.find(id) : undefined;
    if (user === undefined) throw noUser();
    return user;
  }

  /**
   * Makes a user an operator or not, and blocks or unblocks; in force with the next request. `by`
   * is the operator who asks. Throws `not_found`, and `conflict` where no operator would be left,
   * or operators would lock themselves out.
   */
  change(id: string, { operator, blocked }: UserChanges, by: string): Promise<UserRecord> {
    return this.mutex.run("users", async () => {
      const user = await this.find(id);
      if (blocked === true && id === by) throw conflict("You cannot block yourself.", "blocked");
      await this.options.database.transaction().execute(async (transaction) => {
        if (operator === false || blocked === true) await assertOtherOperator(transaction, id);
        if (operator !== undefined) {
          await transaction
            .updateTable("users")
            .set({ operator: operator ? 1 : 0 })
            .where("id", "=", id)
            .execute();
        }
        if (blocked !== undefined) await this.writeBlocked(transaction, user, blocked);
      });
      if (blocked !== undefined) await this.putBlocked(user, blocked);
      return this.find(id);
    });
  }

  /**
   * Removes a second factor that is lost: signing in takes the password alone until another is set
   * up. Throws `not_found`.
   */
  removeSecondFactor(id: string): Promise<void> {
    return this.mutex.run("users", async () => {
      const user = await this.find(id);
      const removed = await this.options.database.transaction().execute(async (transaction) => {
        await transaction
          .updateTable("users")
          .set({ two_factor_enabled: 0 })
          .where("id", "=", user.id)
          .execute();
        return transaction
          .deleteFrom("two_factors")
          .where("user_id", "=", user.id)
          .executeTakeFirst();
      });
      if (removed.numDeletedRows === 0n)
        throw new GatewayError("not_found", "The user has no second factor.");
    });
  }

  /**
   * Deletes a user with their sessions, sign-in methods and memberships. The personal workspace,
   * and organisations without other members, are closed and their credentials revoked. `by` is null
   * where users delete their own account. Throws `not_found`, and `conflict` for the last operator,
   * for an operator who asks to delete the own account that way, and for the only owner of an
   * organisation with other members.
   */
  remove(id: string, by: string | null): Promise<ClosedWorkspace[]> {
    return this.mutex.run("users", async () => {
      const user = await this.find(id);
      if (id === by) throw conflict("You cannot delete yourself. Another operator can.");
      // Blocked first: a second deletion completes what a crash interrupted.
      const abandoned = await this.options.database.transaction().execute(async (transaction) => {
        await assertOtherOperator(transaction, id);
        const alone = await abandonedBy(transaction, id);
        await this.writeBlocked(transaction, user, true);
        return alone;
      });
      await this.putBlocked(user, true);
      const closed: ClosedWorkspace[] = [];
      for (const workspaceId of this.closingOf(user, abandoned))
        closed.push(await this.close(workspaceId));
      await this.options.database.transaction().execute(async (transaction) => {
        await transaction
          .updateTable("workspaces")
          .set({ owner_user_id: null })
          .where("owner_user_id", "=", id)
          .execute();
        await transaction.deleteFrom("user_preferences").where("user_id", "=", id).execute();
        await transaction.deleteFrom("users").where("id", "=", id).execute();
      });
      if (user.workspaceId !== null)
        this.putChanged(user.workspaceId, ({ ownerUserId: _, ...workspace }) => workspace);
      return closed;
    });
  }

  /**
   * Returns the workspaces that are closed with a user. Throws `not_found`, and `conflict` for the
   * only owner of an organisation with other members.
   */
  async closingWith(id: string): Promise<string[]> {
    const user = await this.find(id);
    const { database } = this.options;
    return this.closingOf(
      user,
      await database.transaction().execute((transaction) => abandonedBy(transaction, id)),
    );
  }

  private closingOf({ workspaceId }: UserRecord, abandoned: readonly string[]): string[] {
    const all = workspaceId === null ? abandoned : [workspaceId, ...abandoned];
    return all.filter((id) => id !== this.options.operatorWorkspaceId);
  }

  /**
   * Returns the personal workspace, whose keys follow its owner. Those of the first workspace are
   * the service's own.
   */
  private followingOf({ workspaceId }: UserRecord): string | undefined {
    return workspaceId === null || workspaceId === this.options.operatorWorkspaceId
      ? undefined
      : workspaceId;
  }

  private async writeBlocked(
    transaction: Transaction<PeopleTables>,
    user: UserRecord,
    blocked: boolean,
  ): Promise<void> {
    const values = { blocked_at_ms: blocked ? this.options.clock.nowMs() : null };
    await transaction.updateTable("users").set(values).where("id", "=", user.id).execute();
    const following = this.followingOf(user);
    if (following !== undefined)
      await transaction.updateTable("workspaces").set(values).where("id", "=", following).execute();
  }

  private async putBlocked(user: UserRecord, blocked: boolean): Promise<void> {
    const following = this.followingOf(user);
    const change = ({ blocked: _, ...workspace }: Workspace): Workspace =>
      blocked ? { ...workspace, blocked: true } : workspace;
    if (following !== undefined) this.putChanged(following, change);
    if (blocked) await this.options.sessions.revokeAll(user.id);
  }

  /** Closes a workspace permanently and revokes its credentials. Its balance and records remain. */
  async close(workspaceId: string): Promise<ClosedWorkspace> {
    const { database, clock, revokeCredentials } = this.options;
    await database
      .updateTable("workspaces")
      .set({ blocked_at_ms: clock.nowMs() })
      .where("id", "=", workspaceId)
      .execute();
    this.putChanged(workspaceId, (workspace) => ({ ...workspace, blocked: true }));
    return { workspaceId, ...(await revokeCredentials(workspaceId)) };
  }

  private putChanged(id: string, change: (workspace: Workspace) => Workspace): void {
    const workspace = this.options.workspace(id);
    if (workspace !== undefined) this.options.putWorkspace(change(workspace));
  }
}

/**
 * Throws `conflict` where no operator would be left who may sign in. No other operator is removed
 * until the transaction ends.
 */
async function assertOtherOperator(
  transaction: Transaction<PeopleTables>,
  id: string,
): Promise<void> {
  await operatorsOneAtATime(transaction);
  const operators = await transaction
    .selectFrom("users")
    .select("id")
    .where("operator", "=", 1)
    .where((where) => where.or([where("blocked_at_ms", "is", null), where("id", "=", id)]))
    .execute();
  if (operators.length > 1 || operators[0]?.id !== id) return;
  throw conflict("This is the last operator. Make another person one first.", "operator");
}

/**
 * Returns the workspaces of organisations whose only member this is. Throws `conflict` where other
 * members would be left without an owner who may sign in.
 */
async function abandonedBy(
  transaction: Transaction<PeopleTables>,
  userId: string,
): Promise<string[]> {
  const own = await transaction
    .selectFrom("organization_members as member")
    .innerJoin("organizations as organization", "organization.id", "member.organization_id")
    .innerJoin("workspaces as workspace", "workspace.organization_id", "organization.id")
    .select(["organization.id", "organization.name", "workspace.id as workspaceId", "member.role"])
    .where("member.user_id", "=", userId)
    .orderBy("organization.id")
    .execute();
  const alone: string[] = [];
  for (const { id, name, workspaceId, role } of own) {
    await ownersOneAtATime(transaction, id);
    const other = await transaction
      .selectFrom("organization_members")
      .select("user_id")
      .where("organization_id", "=", id)
      .where("user_id", "!=", userId)
      .executeTakeFirst();
    if (other === undefined) alone.push(workspaceId);
    else if (
      role === "owner" &&
      !(await hasOtherOwner(transaction, { organizationId: id, userId }))
    ) {
      throw conflict(
        `This user is the only owner of the organisation ${name}. Its members would be left without one.`,
      );
    }
  }
  return alone;
}
