import type { Kysely, Transaction } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import { workspaceRow, type PlanId, type Workspace } from "../workspaces/workspace-store.ts";
import type { Invitation, Invitations } from "./links/invitations.ts";
import type { PeopleTables } from "./people-tables.ts";
import { hasSecondFactor, secondFactorMissing } from "./sign-in/second-factors.ts";
import { managesPeople, mayAssign, type Role } from "./roles.ts";
import { hasOtherOwner, ownersOneAtATime } from "./ownership.ts";

/** The most organisations that one person may own. */
const ownedMax = 50;

/** An organisation, as one of its members sees it. */
export interface Organization {
  /** An `org_` id. */
  id: string;
  name: string;
  createdAtMs: number;
  workspaceId: string;
  /** The role of the calling person in it. */
  role: Role;
  /** Whether its members need a second factor to enter. */
  secondFactorRequired: boolean;
}

/** A member of an organisation. */
export interface Member {
  userId: string;
  name: string;
  email: string;
  role: Role;
  joinedAtMs: number;
  /** Whether more than a password is needed to sign in as this person. */
  secondFactor: boolean;
}

/** A person in an organisation. */
interface Standing {
  organizationId: string;
  userId: string;
}

/** Options of organisations. */
interface OrganizationsOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  invitations: Invitations;
  /** The plan of workspaces that people create. */
  plan: PlanId;
  putWorkspace(workspace: Workspace): void;
}

const noSuchOrganization = (): GatewayError =>
  new GatewayError(
    "not_found",
    "There is no such organisation among yours. GET /organizations lists them.",
  );
const noSuchMember = (): GatewayError =>
  new GatewayError("not_found", "This organisation has no such member.");

/**
 * Organisations and the roles of their members. Each has one workspace, which owns its keys,
 * balance and records.
 */
export class Organizations {
  constructor(private readonly options: OrganizationsOptions) {}

  /** Returns the organisations that a user is a member of, by age. */
  async of(userId: string): Promise<Organization[]> {
    const rows = await this.rows(userId)
      .orderBy("organization.created_at_ms")
      .orderBy("organization.id")
      .execute();
    return rows.map(organizationOf);
  }

  /**
   * Returns one of a user's organisations. Throws `not_found`, also where the user is no member.
   */
  async find(
    { organizationId, userId }: Standing,
    database = this.options.database,
  ): Promise<Organization> {
    const found = mayBeId(organizationId)
      ? await this.rows(userId, database)
          .where("organization.id", "=", organizationId)
          .executeTakeFirst()
      : undefined;
    if (found === undefined) throw noSuchOrganization();
    return organizationOf(found);
  }

  /** Returns an organisation that the user may manage. Throws `not_found` or `forbidden`. */
  async findManaged(standing: Standing, database = this.options.database): Promise<Organization> {
    const organization = await this.find(standing, database);
    if (managesPeople(organization.role)) return organization;
    throw new GatewayError("forbidden", "Only owners and admins of the organisation may do this.");
  }

  /** Creates an organisation with its workspace; the user becomes its owner. */
  async create({ userId, name }: { userId: string; name: string }): Promise<Organization> {
    const { database, clock, plan } = this.options;
    const nowMs = clock.nowMs();
    const owned = (await this.of(userId)).filter(({ role }) => role === "owner").length;
    if (owned >= ownedMax)
      throw new GatewayError("conflict", `You own ${ownedMax} organisations already.`);
    const organizationId = newId("org", nowMs);
    const workspace: Workspace = {
      id: newId("ws", nowMs),
      name,
      plan,
      createdAtMs: nowMs,
      organizationId,
    };
    await database.transaction().execute(async (transaction) => {
      await transaction
        .insertInto("organizations")
        .values({ id: organizationId, name, created_at_ms: nowMs })
        .execute();
      await transaction
        .insertInto("organization_members")
        .values({
          organization_id: organizationId,
          user_id: userId,
          role: "owner",
          joined_at_ms: nowMs,
        })
        .execute();
      await transaction.insertInto("workspaces").values(workspaceRow(workspace)).execute();
    });
    this.options.putWorkspace(workspace);
    return {
      id: organizationId,
      name,
      createdAtMs: nowMs,
      workspaceId: workspace.id,
      role: "owner",
      secondFactorRequired: false,
    };
  }

  /**
   * Requires a second factor of each member who enters, or no longer. Throws `forbidden` for all but
   * owners, and `conflict` for an owner without one, who would be locked out.
   */
  async requireSecondFactor(organization: Organization, userId: string, required: boolean) {
    if (organization.role !== "owner")
      throw new GatewayError("forbidden", "Only owners may require a second factor.", {
        param: "second_factor_required",
      });
    const { secondFactor } = await this.memberOf(
      { organizationId: organization.id, userId },
      this.options.database,
    );
    if (required && !secondFactor)
      throw new GatewayError(
        "conflict",
        "second_factor_required: set up your own second factor first (POST /api/auth/two-factor/enable).",
        { param: "second_factor_required" },
      );
    await this.options.database
      .updateTable("organizations")
      .set({ second_factor_required: required ? 1 : 0 })
      .where("id", "=", organization.id)
      .execute();
  }

  async rename(organizationId: string, name: string): Promise<void> {
    await this.options.database
      .updateTable("organizations")
      .set({ name })
      .where("id", "=", organizationId)
      .execute();
  }

  /** Throws `forbidden` where a member lacks the second factor that the organisation requires. */
  async assertMayEnter({ id, name, secondFactorRequired }: Organization, userId: string) {
    if (!secondFactorRequired) return;
    const standing = { organizationId: id, userId };
    const { secondFactor } = await this.memberOf(standing, this.options.database);
    if (!secondFactor) throw secondFactorMissing(name);
  }

  /** Returns its members, by the time of joining. */
  async members(organizationId: string): Promise<Member[]> {
    const rows = await memberRows(this.options.database, organizationId)
      .orderBy("member.joined_at_ms")
      .orderBy("member.user_id")
      .execute();
    return rows.map(personOf);
  }

  /** Throws `conflict` where a member has this address. */
  async assertNoMember(organizationId: string, email: string): Promise<void> {
    const found = await memberRows(this.options.database, organizationId)
      .where("user.email", "=", email)
      .executeTakeFirst();
    if (found === undefined) return;
    throw new GatewayError(
      "conflict",
      `email: this person is already a member (${found.role}). PATCH /organizations/{id}/members/{user_id} changes the role.`,
      { param: "email" },
    );
  }

  /** Adds a member by the token of an invitation for their address. Throws `forbidden`. */
  async accept({
    token,
    userId,
    email,
  }: {
    token: string;
    userId: string;
    email: string;
  }): Promise<Organization> {
    const organizationId = await this.options.database
      .transaction()
      .execute((transaction) =>
        this.options.invitations.take(transaction, { token, userId, email }),
      );
    return this.find({ organizationId, userId });
  }

  /**
   * Changes a member's role and withdraws the invitations that it does not allow. Throws
   * `not_found`, `forbidden` for admins who change owners, and `conflict` where no owner would be
   * left.
   */
  changeRole(
    standing: Standing,
    change: { member: string; role: Role },
  ): Promise<{ member: Member; withdrawn: Invitation[] }> {
    return this.oneAtATime(standing.organizationId, async (transaction) => {
      const { role: own } = await this.findManaged(standing, transaction);
      const member = await this.memberOf({ ...standing, userId: change.member }, transaction);
      this.assertMayAssign(own, member.role);
      this.assertMayAssign(own, change.role);
      if (change.role !== "owner")
        await assertOtherOwner(transaction, standing.organizationId, member);
      await transaction
        .updateTable("organization_members")
        .set({ role: change.role })
        .where("organization_id", "=", standing.organizationId)
        .where("user_id", "=", member.userId)
        .execute();
      const { organizationId } = standing;
      const withdrawn = await this.options.invitations.withdrawBeyond(transaction, {
        organizationId,
        userId: member.userId,
        role: change.role,
      });
      return { member: { ...member, role: change.role }, withdrawn };
    });
  }

  /**
   * Removes a member, or lets them leave; their sessions lose the workspace at once. Returns the
   * invitations that were withdrawn with them. Throws as `changeRole` does.
   */
  remove(standing: Standing, member: string): Promise<Invitation[]> {
    return this.oneAtATime(standing.organizationId, async (transaction) => {
      const leaves = member === standing.userId;
      const { role: own } = leaves
        ? await this.find(standing, transaction)
        : await this.findManaged(standing, transaction);
      const leaving = await this.memberOf({ ...standing, userId: member }, transaction);
      if (!leaves) this.assertMayAssign(own, leaving.role);
      await assertOtherOwner(transaction, standing.organizationId, leaving);
      await transaction
        .deleteFrom("organization_members")
        .where("organization_id", "=", standing.organizationId)
        .where("user_id", "=", member)
        .execute();
      return this.options.invitations.withdrawBeyond(transaction, {
        organizationId: standing.organizationId,
        userId: member,
        role: undefined,
      });
    });
  }

  /**
   * Dissolves an organisation. Its members and invitations are removed at once, and its workspace
   * admits no caller until it is closed. Throws `forbidden` for all but owners.
   */
  dissolve(standing: Standing): Promise<void> {
    const { organizationId } = standing;
    return this.oneAtATime(organizationId, async (transaction) => {
      const { role, workspaceId } = await this.find(standing, transaction);
      if (role !== "owner")
        throw new GatewayError("forbidden", "Only owners may delete the organisation.");
      const nowMs = this.options.clock.nowMs();
      await transaction
        .updateTable("workspaces")
        .set({ blocked_at_ms: nowMs })
        .where("id", "=", workspaceId)
        .execute();
      await transaction
        .updateTable("organization_invitations")
        .set({ revoked_at_ms: nowMs })
        .where("organization_id", "=", organizationId)
        .where("accepted_at_ms", "is", null)
        .where("revoked_at_ms", "is", null)
        .execute();
      await transaction
        .deleteFrom("organization_members")
        .where("organization_id", "=", organizationId)
        .execute();
    });
  }

  assertMayAssign(own: Role, other: Role): void {
    if (mayAssign(own, other)) return;
    throw new GatewayError("forbidden", "Only owners may make, change and remove owners.");
  }

  /**
   * Serialises changes of one organisation's members across all gateways, so that two owners cannot
   * leave at once.
   */
  private oneAtATime<Result>(
    organizationId: string,
    work: (transaction: Transaction<PeopleTables>) => Promise<Result>,
  ): Promise<Result> {
    return this.options.database.transaction().execute(async (transaction) => {
      await ownersOneAtATime(transaction, organizationId);
      return work(transaction);
    });
  }

  private async memberOf(
    { organizationId, userId }: Standing,
    database: Kysely<PeopleTables>,
  ): Promise<Member> {
    const found = mayBeId(userId)
      ? await memberRows(database, organizationId)
          .where("member.user_id", "=", userId)
          .executeTakeFirst()
      : undefined;
    if (found === undefined) throw noSuchMember();
    return personOf(found);
  }

  private rows(userId: string, database: Kysely<PeopleTables> = this.options.database) {
    return database
      .selectFrom("organization_members as member")
      .innerJoin("organizations as organization", "organization.id", "member.organization_id")
      .innerJoin("workspaces as workspace", "workspace.organization_id", "organization.id")
      .select([
        "organization.id",
        "organization.name",
        "organization.created_at_ms as createdAtMs",
        "workspace.id as workspaceId",
        "member.role",
        "organization.second_factor_required as required",
      ])
      .where("member.user_id", "=", userId)
      .$castTo<Omit<Organization, "secondFactorRequired"> & { required: number }>();
  }
}

const memberRows = (database: Kysely<PeopleTables>, organizationId: string) =>
  database
    .selectFrom("organization_members as member")
    .innerJoin("users as user", "user.id", "member.user_id")
    .select([
      "user.id as userId",
      "user.name",
      "user.email",
      "member.role",
      "member.joined_at_ms as joinedAtMs",
      hasSecondFactor.as("factor"),
    ])
    .where("member.organization_id", "=", organizationId)
    .$castTo<Omit<Member, "secondFactor"> & { factor: number }>();

const personOf = ({
  factor,
  ...row
}: Omit<Member, "secondFactor"> & { factor: number }): Member => ({
  ...row,
  secondFactor: Number(factor) === 1,
});

const organizationOf = ({
  required,
  ...row
}: Omit<Organization, "secondFactorRequired"> & { required: number }): Organization => ({
  ...row,
  secondFactorRequired: required === 1,
});

/** Throws `conflict` where no owner would be left who may sign in. */
async function assertOtherOwner(
  transaction: Transaction<PeopleTables>,
  organizationId: string,
  member: Member,
): Promise<void> {
  if (
    member.role !== "owner" ||
    (await hasOtherOwner(transaction, { organizationId, userId: member.userId }))
  )
    return;
  throw new GatewayError(
    "conflict",
    "An organisation has an owner. Make another member one first.",
  );
}
