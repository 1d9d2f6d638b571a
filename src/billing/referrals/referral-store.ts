import type { Kysely, Transaction } from "kysely";
import type { PeopleTables } from "../../identity/people/people-tables.ts";
import { randomBase62 } from "../../platform/kernel/ids.ts";
import type { PaymentTables } from "../payments/payment-tables.ts";

/** The operator's settings for referral credits. */
export interface ReferralSettings {
  /** Nano-USD of credits for the referring workspace; 0 grants none. */
  referrerNano: bigint;
  /** Nano-USD of credits for the new user. */
  referredNano: bigint;
  /**
   * The event that grants them: the first top-up by card, or the sign-up (once the address is
   * confirmed, where mail is sent).
   */
  after: "first_top_up" | "sign_up";
  /** The most referrals for which a workspace is granted credits. */
  maximumPerWorkspace: number;
}

interface ReferralRow {
  user_id: string;
  mailbox_hash: string;
  workspace_id: string;
  referrer_workspace_id: string;
  created_at_ms: number;
  decided_at_ms: number | null;
  referrer_nano: number | bigint | null;
  referred_nano: number | bigint | null;
  rewarded_at_ms: number | null;
}

/** The tables that referrals read and write. */
export type ReferralTables = PeopleTables &
  Pick<PaymentTables, "payment_receipts"> & {
    referral_codes: { workspace_id: string; code: string; created_at_ms: number };
    referrals: ReferralRow;
  };

/** A referral, with the credits of both sides once they are decided. */
export interface Referral {
  userId: string;
  /** The personal workspace of the new user. */
  workspaceId: string;
  referrerWorkspaceId: string;
  createdAtMs: number;
  reward: { referrerNano: bigint; referredNano: bigint } | undefined;
  rewarded: boolean;
}

/** A referral that is being recorded, with a hash of the user's mailbox. */
export type NewReferral = Omit<Referral, "reward" | "rewarded"> & { mailboxHash: string };

/** The facts that decide whether a user is new. */
interface Newcomer {
  createdAtMs: number;
  /** The personal workspace. */
  workspaceId: string;
  organizationIds: string[];
  /** Whether there was a top-up. */
  hasPaid: boolean;
}

const fromRow = (row: ReferralRow): Referral => ({
  userId: row.user_id,
  workspaceId: row.workspace_id,
  referrerWorkspaceId: row.referrer_workspace_id,
  createdAtMs: row.created_at_ms,
  reward:
    row.decided_at_ms === null
      ? undefined
      : {
          referrerNano: BigInt(row.referrer_nano ?? 0),
          referredNano: BigInt(row.referred_nano ?? 0),
        },
  rewarded: row.rewarded_at_ms !== null,
});

/** The length of a code. 62^10 are too many to guess one, and ten characters fit on a card. */
const codeLength = 10;
/** The most referrals that are granted before the next query. */
export const dueAtOnceMax = 100;

/** Stores referral codes and referrals. */
export class ReferralStore {
  constructor(private readonly database: Kysely<ReferralTables>) {}

  /** Returns the code of a workspace, which is created on first use. */
  async codeOf(workspaceId: string, nowMs: number): Promise<string> {
    await this.database
      .insertInto("referral_codes")
      .values({ workspace_id: workspaceId, code: randomBase62(codeLength), created_at_ms: nowMs })
      .onConflict((conflict) => conflict.column("workspace_id").doNothing())
      .execute();
    const { code } = await this.database
      .selectFrom("referral_codes")
      .select("code")
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirstOrThrow();
    return code;
  }

  /**
   * Returns the workspace of a code; undefined where the code is unknown or the workspace is
   * blocked.
   */
  async workspaceOf(
    code: string,
  ): Promise<{ id: string; organizationId: string | null } | undefined> {
    return this.database
      .selectFrom("referral_codes as code")
      .innerJoin("workspaces as workspace", "workspace.id", "code.workspace_id")
      .select(["workspace.id", "workspace.organization_id as organizationId"])
      .where("code.code", "=", code)
      .where("workspace.blocked_at_ms", "is", null)
      .executeTakeFirst();
  }

  /**
   * Records a referral, unless this user or this mailbox was referred before. Returns whether it
   * was recorded.
   */
  async note(
    { mailboxHash, ...referral }: NewReferral,
    database: Kysely<ReferralTables> = this.database,
  ): Promise<boolean> {
    const row = await database
      .insertInto("referrals")
      .values({
        user_id: referral.userId,
        mailbox_hash: mailboxHash,
        workspace_id: referral.workspaceId,
        referrer_workspace_id: referral.referrerWorkspaceId,
        created_at_ms: referral.createdAtMs,
        decided_at_ms: null,
        referrer_nano: null,
        referred_nano: null,
        rewarded_at_ms: null,
      })
      .onConflict((conflict) => conflict.doNothing())
      .returning("user_id")
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Returns a user with a personal workspace. */
  async newcomer(userId: string): Promise<Newcomer | undefined> {
    const row = await this.database
      .selectFrom("users as user")
      .innerJoin("workspaces as own", "own.owner_user_id", "user.id")
      .leftJoin("payment_receipts as receipt", "receipt.workspace_id", "own.id")
      .select([
        "user.created_at as createdAt",
        "own.id as workspaceId",
        "receipt.order_id as orderId",
      ])
      .where("user.id", "=", userId)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const memberships = await this.database
      .selectFrom("organization_members")
      .select("organization_id")
      .where("user_id", "=", userId)
      .execute();
    return {
      createdAtMs: Date.parse(row.createdAt),
      workspaceId: row.workspaceId,
      hasPaid: row.orderId !== null,
      organizationIds: memberships.map(({ organization_id: id }) => id),
    };
  }

  /** Returns the people whom a workspace referred. */
  async broughtBy(workspaceId: string): Promise<Referral[]> {
    const rows = await this.database
      .selectFrom("referrals")
      .selectAll()
      .where("referrer_workspace_id", "=", workspaceId)
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the referral of a workspace's owner; undefined where there is none. */
  async bringing(workspaceId: string): Promise<Referral | undefined> {
    const row = await this.database
      .selectFrom("referrals")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns some of the referrals whose credits are due and not granted yet, oldest first. */
  async due({
    after,
    verified,
  }: {
    after: ReferralSettings["after"];
    verified: boolean;
  }): Promise<Referral[]> {
    let query = this.database
      .selectFrom("referrals")
      .selectAll("referrals")
      .where("rewarded_at_ms", "is", null);
    if (after === "first_top_up") {
      query = query.where(({ exists, selectFrom }) =>
        exists(
          selectFrom("payment_receipts")
            .select("payment_receipts.order_id")
            .whereRef("payment_receipts.workspace_id", "=", "referrals.workspace_id"),
        ),
      );
    } else if (verified) {
      query = query
        .innerJoin("users", "users.id", "referrals.user_id")
        .where("users.email_verified", "=", 1);
    }
    const rows = await query
      .orderBy("referrals.created_at_ms")
      .orderBy("referrals.user_id")
      .limit(dueAtOnceMax)
      .execute();
    return rows.map(fromRow);
  }

  /** Decides the credits of both sides once. A workspace at its maximum gets no more. */
  decide(
    referral: Referral,
    { settings, nowMs }: { settings: ReferralSettings; nowMs: number },
  ): Promise<Referral> {
    return this.database.transaction().execute(async (transaction) => {
      // The write locks the row, so that on any gateway others that count for the same workspace
      // wait.
      await transaction
        .updateTable("referral_codes")
        .set(({ ref }) => ({ code: ref("code") }))
        .where("workspace_id", "=", referral.referrerWorkspaceId)
        .execute();
      const isShared = await this.hasRoom(
        transaction,
        referral.referrerWorkspaceId,
        settings.maximumPerWorkspace,
      );
      await transaction
        .updateTable("referrals")
        .set({
          decided_at_ms: nowMs,
          referrer_nano: isShared ? Number(settings.referrerNano) : 0,
          referred_nano: Number(settings.referredNano),
        })
        .where("user_id", "=", referral.userId)
        .where("decided_at_ms", "is", null)
        .execute();
      const decided = transaction
        .selectFrom("referrals")
        .selectAll()
        .where("user_id", "=", referral.userId);
      return fromRow(await decided.executeTakeFirstOrThrow());
    });
  }

  async markRewarded(userId: string, nowMs: number): Promise<void> {
    await this.database
      .updateTable("referrals")
      .set({ rewarded_at_ms: nowMs })
      .where("user_id", "=", userId)
      .execute();
  }

  private async hasRoom(
    transaction: Transaction<ReferralTables>,
    workspaceId: string,
    maximum: number,
  ): Promise<boolean> {
    const workspace = await transaction
      .selectFrom("workspaces")
      .select("blocked_at_ms")
      .where("id", "=", workspaceId)
      .executeTakeFirst();
    if (workspace === undefined || workspace.blocked_at_ms !== null) return false;
    const { count } = await transaction
      .selectFrom("referrals")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("referrer_workspace_id", "=", workspaceId)
      .where("referrer_nano", ">", 0)
      .executeTakeFirstOrThrow();
    return Number(count) < maximum;
  }
}
