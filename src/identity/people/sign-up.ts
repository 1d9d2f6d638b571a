import type { Kysely, Transaction } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { workspaceRow, type PlanId, type Workspace } from "../workspaces/workspace-store.ts";
import type { Invitations } from "./links/invitations.ts";
import type { OwnerClaim } from "./links/owner-claim.ts";
import type { BreachedPasswords } from "./sign-in/breached-passwords.ts";
import type { PasswordHasher } from "./sign-in/password-hasher.ts";
import type { PeopleTables } from "./people-tables.ts";
import { insertPassword } from "./user-store.ts";

/** The people who may create an account: no one, holders of an invitation, or everyone. */
export type SignUpPolicy = "closed" | "invitation" | "open";

/** The grounds on which a person may have an account: a token, or the policy alone. */
export type Entitlement = { by: "claim" | "invitation"; token: string } | { by: "policy" };

/** The fields of an account with a password. */
export interface NewPerson {
  name: string;
  /** The address in lower case. */
  email: string;
  password: string;
  /** The referral code that this person entered. */
  referralCode?: string | undefined;
}

/** The workspace whose referral code a new person used. */
export interface Referrer {
  workspaceId: string;
  /** Null for a personal workspace. Joining the organisation by invitation earns no credits. */
  organizationId: string | null;
}

/** The part of referral credits that signing up uses. */
export interface SignUpReferrals {
  /**
   * Returns the workspace of a referral code. Throws `bad_request` for a code that is unknown or
   * their own.
   */
  referrerOf(code: string, email: string): Promise<Referrer>;
  /** Records the referral within a transaction. */
  note(
    transaction: Transaction<PeopleTables>,
    came: { referrer: Referrer; email: string; userId: string; workspaceId: string },
  ): Promise<boolean>;
  /** Grants credits that are due soon after. */
  soon(): void;
}

/** Options of signing up. */
interface SignUpOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  hasher: PasswordHasher;
  breached: BreachedPasswords;
  claim: OwnerClaim;
  invitations: Invitations;
  policy: SignUpPolicy;
  /** The credits for referrals; absent where none are granted. */
  referrals: SignUpReferrals | undefined;
  /** The plan of workspaces that people create. */
  plan: PlanId;
  /** Returns the workspace of the first start, which the owner of the installation takes over. */
  firstWorkspace(): Workspace | undefined;
  putWorkspace(workspace: Workspace): void;
}

const emailTaken = (): GatewayError =>
  new GatewayError("conflict", "There is an account with this e-mail address. Sign in instead.", {
    param: "email",
  });

/** Creates accounts with a password, each with its personal workspace, all or nothing. */
export class SignUp {
  constructor(private readonly options: SignUpOptions) {}

  /**
   * Creates an account and returns the user's id. Throws `forbidden` without entitlement,
   * `conflict` where the e-mail has an account, and `bad_request` for a referral code that is
   * unknown or their own.
   */
  async create(person: NewPerson, entitlement: Entitlement): Promise<string> {
    const { password } = await this.prepare(person, entitlement);
    return this.insert({ person, password, entitlement, emailVerified: false });
  }

  /**
   * Checks that the person may have an account, and hashes the password. Throws as `create` does,
   * except for an address that is taken.
   */
  async prepare(person: NewPerson, entitlement: Entitlement): Promise<{ password: string }> {
    const { hasher, breached } = this.options;
    await this.assertEntitled(entitlement);
    await this.referrerOf(person, entitlement);
    await breached.assertUnknown(person.password);
    hasher.assertRoom();
    // Before any transaction: hashing takes time, and settlements wait behind transactions.
    return { password: await hasher.hash(person.password) };
  }

  /** Creates the account, with the hash of its password. */
  async insert({
    person,
    password,
    entitlement,
    emailVerified,
  }: {
    person: Omit<NewPerson, "password">;
    password: string;
    entitlement: Entitlement;
    emailVerified: boolean;
  }): Promise<string> {
    const { clock, database, claim } = this.options;
    const referrer = await this.referrerOf(person, entitlement);
    const nowMs = clock.nowMs();
    const userId = newId("usr", nowMs);
    const workspace = await database
      .transaction()
      .execute(async (transaction) => {
        await this.insertUser(transaction, {
          person,
          password,
          userId,
          nowMs,
          emailVerified,
          operator: entitlement.by === "claim",
        });
        if (entitlement.by === "claim")
          await claim.take(transaction, { token: entitlement.token, userId });
        const own = await this.giveWorkspace(transaction, {
          userId,
          nowMs,
          takesFirst: entitlement.by === "claim",
        });
        const joined =
          entitlement.by !== "invitation"
            ? undefined
            : await this.options.invitations.take(transaction, {
                ...entitlement,
                userId,
                email: person.email,
              });
        if (referrer !== undefined && referrer.organizationId !== (joined ?? "")) {
          await this.options.referrals?.note(transaction, {
            referrer,
            email: person.email,
            userId,
            workspaceId: own.id,
          });
        }
        return own;
      })
      .catch((error: unknown) => {
        throw isUniqueViolation(error) ? emailTaken() : error;
      });
    if (entitlement.by === "claim") claim.markClaimed();
    this.options.putWorkspace(workspace);
    if (referrer !== undefined) this.options.referrals?.soon();
    return userId;
  }

  /**
   * Returns the referrer of this person. Codes are ignored for the owner of the installation, and
   * where no credits are granted.
   */
  private async referrerOf(
    { referralCode, email }: Omit<NewPerson, "password">,
    { by }: Entitlement,
  ): Promise<Referrer | undefined> {
    if (referralCode === undefined || by === "claim") return undefined;
    return this.options.referrals?.referrerOf(referralCode, email);
  }

  /** Creates the personal workspace of a user who came by a provider, where it is missing. */
  async ensureWorkspace(userId: string): Promise<void> {
    const { database, clock } = this.options;
    const has = await database
      .selectFrom("workspaces")
      .select("id")
      .where("owner_user_id", "=", userId)
      .executeTakeFirst();
    if (has !== undefined) return;
    const workspace = this.newWorkspace(userId, clock.nowMs());
    await database.insertInto("workspaces").values(workspaceRow(workspace)).execute();
    this.options.putWorkspace(workspace);
  }

  /**
   * Throws `forbidden` where the policy does not allow this way to sign up, or the token is
   * invalid. Checked first, so that no stranger's password is hashed.
   */
  private async assertEntitled(entitlement: Entitlement): Promise<void> {
    const { policy, claim, invitations } = this.options;
    const { by } = entitlement;
    if (by === "claim") return claim.assertAccepts(entitlement.token);
    if (!claim.isClaimed) {
      throw new GatewayError(
        "forbidden",
        "Sign-up opens when the owner account is claimed with the link of the terminal.",
      );
    }
    if (by === "invitation" && policy !== "closed")
      return invitations.assertOpen(entitlement.token);
    if (policy === "open") return;
    const way = policy === "invitation" ? "Ask for an invitation." : "Ask the operator.";
    throw new GatewayError("forbidden", `This installation is closed for sign-up. ${way}`);
  }

  private async insertUser(
    transaction: Transaction<PeopleTables>,
    {
      person,
      password,
      userId,
      nowMs,
      operator,
      emailVerified,
    }: {
      person: Omit<NewPerson, "password">;
      password: string;
      userId: string;
      nowMs: number;
      operator: boolean;
      emailVerified: boolean;
    },
  ): Promise<void> {
    const now = new Date(nowMs).toISOString();
    await transaction
      .insertInto("users")
      .values({
        id: userId,
        name: person.name,
        email: person.email,
        email_verified: emailVerified ? 1 : 0,
        image: null,
        operator: operator ? 1 : 0,
        created_at: now,
        updated_at: now,
        blocked_at_ms: null,
        last_signed_in_at_ms: null,
      })
      .execute();
    await insertPassword(transaction, { userId, password, nowMs });
  }

  private newWorkspace(userId: string, nowMs: number): Workspace {
    return {
      id: newId("ws", nowMs),
      name: "Personal",
      plan: this.options.plan,
      createdAtMs: nowMs,
      ownerUserId: userId,
    };
  }

  private async giveWorkspace(
    transaction: Transaction<PeopleTables>,
    { userId, nowMs, takesFirst }: { userId: string; nowMs: number; takesFirst: boolean },
  ): Promise<Workspace> {
    const first = takesFirst ? this.options.firstWorkspace() : undefined;
    if (
      first !== undefined &&
      first.ownerUserId === undefined &&
      first.organizationId === undefined
    ) {
      await transaction
        .updateTable("workspaces")
        .set({ owner_user_id: userId })
        .where("id", "=", first.id)
        .execute();
      return { ...first, ownerUserId: userId };
    }
    const workspace = this.newWorkspace(userId, nowMs);
    await transaction.insertInto("workspaces").values(workspaceRow(workspace)).execute();
    return workspace;
  }
}
