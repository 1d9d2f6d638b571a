import type { ExpressionBuilder, Transaction } from "kysely";
import { dayMs } from "../../../platform/kernel/clock.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../../platform/kernel/ids.ts";
import { type LinkParts, newOneTimeToken } from "./one-time-links.ts";
import { ownersOneAtATime } from "../ownership.ts";
import type { PeopleTables } from "../people-tables.ts";
import type { Role } from "../roles.ts";

const invitationDays = 7;
/** The most open invitations of one organisation. */
const openMax = 500;

/** An invitation of one address to an organisation. Times are in milliseconds. */
export interface Invitation {
  /** An `inv_` id. */
  id: string;
  organizationId: string;
  email: string;
  role: Role;
  inviterUserId: string;
  createdAtMs: number;
  expiresAtMs: number;
}

type Row = PeopleTables["organization_invitations"];

const fromRow = (row: Row): Invitation => ({
  id: row.id,
  organizationId: row.organization_id,
  email: row.email,
  role: row.role as Role,
  inviterUserId: row.inviter_user_id,
  createdAtMs: row.created_at_ms,
  expiresAtMs: row.expires_at_ms,
});

const notOpen = (): GatewayError =>
  new GatewayError(
    "forbidden",
    "This invitation was used, withdrawn, has expired or is for another e-mail address.",
  );

/**
 * Invitations to organisations. Their links are shown once; the database keeps a hash of the token.
 */
export class Invitations {
  constructor(private readonly parts: LinkParts) {}

  /**
   * Creates an invitation, which replaces an open one for the same address. Throws `conflict` where
   * too many are open.
   */
  async create(
    wanted: Pick<Invitation, "organizationId" | "email" | "role" | "inviterUserId">,
  ): Promise<{ token: string; invitation: Invitation }> {
    const nowMs = this.parts.clock.nowMs();
    const open = await this.list(wanted.organizationId);
    if (open.length >= openMax)
      throw new GatewayError(
        "conflict",
        `This organisation has ${openMax} open invitations. Withdraw some.`,
      );
    const { token, hash } = newOneTimeToken(this.parts.hasher);
    const invitation: Invitation = {
      ...wanted,
      id: newId("inv", nowMs),
      createdAtMs: nowMs,
      expiresAtMs: nowMs + invitationDays * dayMs,
    };
    await this.parts.database.transaction().execute(async (transaction) => {
      // Of two people who invite one address at once, the second replaces what the first sent.
      await ownersOneAtATime(transaction, wanted.organizationId);
      await transaction
        .updateTable("organization_invitations")
        .set({ revoked_at_ms: nowMs })
        .where("organization_id", "=", wanted.organizationId)
        .where("email", "=", wanted.email)
        .where(isPending)
        .execute();
      await transaction
        .insertInto("organization_invitations")
        .values({
          id: invitation.id,
          organization_id: invitation.organizationId,
          email: invitation.email,
          role: invitation.role,
          token_hash: hash,
          inviter_user_id: invitation.inviterUserId,
          created_at_ms: nowMs,
          expires_at_ms: invitation.expiresAtMs,
          accepted_at_ms: null,
          revoked_at_ms: null,
        })
        .execute();
    });
    return { token, invitation };
  }

  /**
   * Withdraws the open invitations of a person that their role in an organisation does not allow;
   * without a role, all of them. Returns those.
   */
  async withdrawBeyond(
    transaction: Transaction<PeopleTables>,
    {
      organizationId,
      userId,
      role,
    }: { organizationId: string; userId: string; role: Role | undefined },
  ): Promise<Invitation[]> {
    if (role === "owner") return [];
    const nowMs = this.parts.clock.nowMs();
    const query = transaction
      .updateTable("organization_invitations")
      .set({ revoked_at_ms: nowMs })
      .where("organization_id", "=", organizationId)
      .where("inviter_user_id", "=", userId)
      .where(isPending)
      .where("expires_at_ms", ">", nowMs)
      .returningAll();
    return (await (role === "admin" ? query.where("role", "=", "owner") : query).execute()).map(
      fromRow,
    );
  }

  /** Returns the open invitations of an organisation, newest first. */
  async list(organizationId: string): Promise<Invitation[]> {
    const rows = await this.openOnes()
      .where("organization_id", "=", organizationId)
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .execute();
    return rows.map(fromRow);
  }

  /**
   * Returns the open invitation of a link, with the organisation's name; undefined where the link
   * is no longer valid.
   */
  async find(token: string): Promise<(Invitation & { organizationName: string }) | undefined> {
    const row = await this.openOnes()
      .where("token_hash", "=", this.parts.hasher.hash(token))
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const organization = await this.parts.database
      .selectFrom("organizations")
      .select("name")
      .where("id", "=", row.organization_id)
      .executeTakeFirst();
    return { ...fromRow(row), organizationName: organization?.name ?? "" };
  }

  /** Throws `forbidden` for a token that is used, revoked, expired or unknown. */
  async assertOpen(token: string): Promise<void> {
    if ((await this.find(token)) === undefined) throw notOpen();
  }

  /** Returns whether there is an open invitation for this address. */
  async expects(email: string): Promise<boolean> {
    return (await this.openOnes().where("email", "=", email).executeTakeFirst()) !== undefined;
  }

  /** Revokes an invitation. Throws `not_found`, also for invitations of other organisations. */
  async revoke({ organizationId, id }: { organizationId: string; id: string }): Promise<void> {
    const row = mayBeId(id)
      ? await this.parts.database
          .updateTable("organization_invitations")
          .set({ revoked_at_ms: this.parts.clock.nowMs() })
          .where("id", "=", id)
          .where("organization_id", "=", organizationId)
          .where(isPending)
          .returning("id")
          .executeTakeFirst()
      : undefined;
    if (row === undefined)
      throw new GatewayError("not_found", "There is no open invitation with this id.");
  }

  /**
   * Makes a user a member by an invitation that its inviter might still send, once. An existing
   * member keeps their role. Throws `forbidden`. Returns the organisation's id.
   */
  async take(
    transaction: Transaction<PeopleTables>,
    { token, userId, email }: { token: string; userId: string; email: string },
  ): Promise<string> {
    const nowMs = this.parts.clock.nowMs();
    const row = await transaction
      .updateTable("organization_invitations")
      .set({ accepted_at_ms: nowMs })
      .where("token_hash", "=", this.parts.hasher.hash(token))
      .where("email", "=", email)
      .where(isPending)
      .where("expires_at_ms", ">", nowMs)
      .where(mayStillInvite)
      .returning(["organization_id", "role"])
      .executeTakeFirst();
    if (row === undefined) throw notOpen();
    await transaction
      .insertInto("organization_members")
      .values({
        organization_id: row.organization_id,
        user_id: userId,
        role: row.role,
        joined_at_ms: nowMs,
      })
      .onConflict((conflict) => conflict.columns(["organization_id", "user_id"]).doNothing())
      .execute();
    return row.organization_id;
  }

  private openOnes() {
    return this.parts.database
      .selectFrom("organization_invitations")
      .selectAll()
      .where(isPending)
      .where("expires_at_ms", ">", this.parts.clock.nowMs())
      .where(mayStillInvite);
  }
}

/** Selects invitations that were neither accepted nor revoked. */
const isPending = (where: ExpressionBuilder<PeopleTables, "organization_invitations">) =>
  where.and([where("accepted_at_ms", "is", null), where("revoked_at_ms", "is", null)]);

/**
 * Selects invitations whose inviter is not blocked and still has a role that may invite to the
 * invitation's role.
 */
const mayStillInvite = ({
  exists,
  selectFrom,
}: ExpressionBuilder<PeopleTables, "organization_invitations">) =>
  exists(
    selectFrom("organization_members as inviting")
      .innerJoin("users as inviter", "inviter.id", "inviting.user_id")
      .select("inviter.id")
      .whereRef("inviting.organization_id", "=", "organization_invitations.organization_id")
      .whereRef("inviting.user_id", "=", "organization_invitations.inviter_user_id")
      .where("inviter.blocked_at_ms", "is", null)
      .where((where) =>
        where.or([
          where("inviting.role", "=", "owner"),
          where.and([
            where("inviting.role", "=", "admin"),
            where("organization_invitations.role", "!=", "owner"),
          ]),
        ]),
      ),
  );

/** The outcomes of mailing an invitation. Its link works in any case. */
export const mailOutcomes = ["sent", "sending", "failed", "limited", "not_configured"] as const;
