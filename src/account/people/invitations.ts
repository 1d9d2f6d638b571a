import type { Kysely, Transaction } from "kysely";
import { dayMs, type Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { mayBeId, newId } from "../../platform/lib/ids.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import { newOneTimeToken } from "./one-time-token.ts";
import type { PeopleTables } from "./people-tables.ts";
import type { Role } from "./role.ts";

const invitationDays = 7;
/** Open invitations that one organisation may have. */
const openMax = 500;

/** Somebody is expected in an organisation. Times in milliseconds. */
export interface Invitation {
  /** `inv_` id. */
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

/** Invitations to organisations. Their links are shown once; the database keeps a hash of the token. */
export class Invitations {
  private readonly database: Kysely<PeopleTables>;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;

  constructor(options: { database: Kysely<PeopleTables>; hasher: SecretHasher; clock: Clock }) {
    this.database = options.database;
    this.hasher = options.hasher;
    this.clock = options.clock;
  }

  /** Makes an invitation in place of an open one for the same address. Throws `conflict` where too many are open. */
  async create(
    wanted: Pick<Invitation, "organizationId" | "email" | "role" | "inviterUserId">,
  ): Promise<{ token: string; invitation: Invitation }> {
    const nowMs = this.clock.nowMs();
    const open = await this.list(wanted.organizationId);
    if (open.length >= openMax)
      throw new GatewayError(
        "conflict",
        `This organisation has ${openMax} open invitations. Withdraw some.`,
      );
    const { token, hash } = newOneTimeToken(this.hasher);
    const invitation: Invitation = {
      ...wanted,
      id: newId("inv", nowMs),
      createdAtMs: nowMs,
      expiresAtMs: nowMs + invitationDays * dayMs,
    };
    await this.database.transaction().execute(async (transaction) => {
      await transaction
        .updateTable("organization_invitations")
        .set({ revoked_at_ms: nowMs })
        .where("organization_id", "=", wanted.organizationId)
        .where("email", "=", wanted.email)
        .where("accepted_at_ms", "is", null)
        .where("revoked_at_ms", "is", null)
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

  /** Those of an organisation that can still be accepted, newest first. */
  async list(organizationId: string): Promise<Invitation[]> {
    const rows = await this.openOnes()
      .where("organization_id", "=", organizationId)
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .execute();
    return rows.map(fromRow);
  }

  /** The open invitation of a link, with the organisation's name; undefined where the link is good for nothing. */
  async find(token: string): Promise<(Invitation & { organizationName: string }) | undefined> {
    const row = await this.openOnes()
      .where("token_hash", "=", this.hasher.hash(token))
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const organization = await this.database
      .selectFrom("organizations")
      .select("name")
      .where("id", "=", row.organization_id)
      .executeTakeFirst();
    return { ...fromRow(row), organizationName: organization?.name ?? "" };
  }

  /** Throws `forbidden` for a token that nobody could use now. */
  async assertOpen(token: string): Promise<void> {
    if ((await this.find(token)) === undefined) throw notOpen();
  }

  /** Whether somebody with this address is expected. */
  async expects(email: string): Promise<boolean> {
    return (await this.openOnes().where("email", "=", email).executeTakeFirst()) !== undefined;
  }

  /** Throws `not_found`, also for invitations of other organisations. */
  async revoke({ organizationId, id }: { organizationId: string; id: string }): Promise<void> {
    const row = mayBeId(id)
      ? await this.database
          .updateTable("organization_invitations")
          .set({ revoked_at_ms: this.clock.nowMs() })
          .where("id", "=", id)
          .where("organization_id", "=", organizationId)
          .where("accepted_at_ms", "is", null)
          .where("revoked_at_ms", "is", null)
          .returning("id")
          .executeTakeFirst()
      : undefined;
    if (row === undefined)
      throw new GatewayError("not_found", "There is no open invitation with this id.");
  }

  /**
   * Makes a user a member by an invitation, once; whoever is one already stays what they are. Throws `forbidden`.
   * Gives the organisation's id.
   */
  async take(
    transaction: Transaction<PeopleTables>,
    { token, userId, email }: { token: string; userId: string; email: string },
  ): Promise<string> {
    const nowMs = this.clock.nowMs();
    const row = await transaction
      .updateTable("organization_invitations")
      .set({ accepted_at_ms: nowMs })
      .where("token_hash", "=", this.hasher.hash(token))
      .where("email", "=", email)
      .where("accepted_at_ms", "is", null)
      .where("revoked_at_ms", "is", null)
      .where("expires_at_ms", ">", nowMs)
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
    return this.database
      .selectFrom("organization_invitations")
      .selectAll()
      .where("accepted_at_ms", "is", null)
      .where("revoked_at_ms", "is", null)
      .where("expires_at_ms", ">", this.clock.nowMs());
  }
}
