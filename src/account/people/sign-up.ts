import type { Kysely, Transaction } from "kysely";
import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import type { PlanId } from "../workspaces/plan.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import { workspaceRow } from "../workspaces/workspace-store.ts";
import type { BreachedPasswords } from "./breached-passwords.ts";
import type { Invitations } from "./invitations.ts";
import type { Referrals, Referrer } from "../referrals/referrals.ts";
import type { OwnerClaim } from "./owner-claim.ts";
import type { PasswordHasher } from "./password-hasher.ts";
import type { PeopleTables } from "./people-tables.ts";

/** Who may make an account: nobody, whoever holds an invitation, or anybody. */
export type SignUpPolicy = "closed" | "invitation" | "open";

/** What entitles somebody to an account; nothing but the policy where no token is named. */
export type Entitlement = { by: "claim" | "invitation"; token: string } | { by: "policy" };

/** What an account with a password is made of. */
export interface NewPerson {
  name: string;
  /** In lower case. */
  email: string;
  password: string;
  /** Whose code brought this person. */
  referralCode?: string | undefined;
}

/** What signing up is built from. */
export interface SignUpOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  hasher: PasswordHasher;
  breached: BreachedPasswords;
  claim: OwnerClaim;
  invitations: Invitations;
  policy: SignUpPolicy;
  /** Credits for bringing somebody; absent where none are given. */
  referrals: Referrals | undefined;
  /** Plan of the workspaces that people make. */
  plan: PlanId;
  /** The workspace of the first start, which its owner takes over. */
  firstWorkspace(): Workspace | undefined;
  putWorkspace(workspace: Workspace): void;
}

const emailTaken = (): GatewayError =>
  new GatewayError("conflict", "There is an account with this e-mail address. Sign in instead.", {
    param: "email",
  });

/** Makes accounts with a password, each with its personal workspace, all or nothing. */
export class SignUp {
  private readonly options: SignUpOptions;

  constructor(options: SignUpOptions) {
    this.options = options;
  }

  /**
   * Throws `forbidden` for whoever may not, `conflict` where the e-mail has an account, `bad_request` for a referral code that
   * is nobody's or their own. Gives the user's id.
   */
  async create(person: NewPerson, entitlement: Entitlement): Promise<string> {
    const { password } = await this.prepare(person, entitlement);
    return this.insert({ person, password, entitlement, emailVerified: false });
  }

  /** Finds out whether somebody may have an account, and hashes the password. Throws as `create`, but for an address that is taken. */
  async prepare(person: NewPerson, entitlement: Entitlement): Promise<{ password: string }> {
    const { hasher, breached } = this.options;
    await this.assertEntitled(entitlement);
    await this.referrerOf(person, entitlement);
    await breached.assertUnknown(person.password);
    hasher.assertRoom();
    // Before any transaction: hashing takes its time, and settlements wait behind transactions.
    return { password: await hasher.hash(person.password) };
  }

  /** Makes the account, with the hash of its password. */
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

  /** Who is to have credits for bringing this person; codes mean nothing to the owner, and where no credits are given. */
  private referrerOf(
    { referralCode, email }: Omit<NewPerson, "password">,
    { by }: Entitlement,
  ): Promise<Referrer | undefined> | undefined {
    if (referralCode === undefined || by === "claim") return undefined;
    return this.options.referrals?.referrerOf(referralCode, email);
  }

  /** Gives a user that came another way the personal workspace that everybody has. */
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

  /** Throws `forbidden` where the policy closes this way in, or the token opens nothing: before a hash is made of a stranger's word. */
  private async assertEntitled(entitlement: Entitlement): Promise<void> {
    const { policy, claim, invitations } = this.options;
    const { by } = entitlement;
    if (by === "claim") return claim.assertAccepts(entitlement.token);
    if (!claim.isClaimed) {
      throw new GatewayError(
        "forbidden",
        "Nobody can sign up before the owner account is claimed with the link of the terminal.",
      );
    }
    if (by === "invitation" && policy !== "closed")
      return invitations.assertOpen(entitlement.token);
    if (policy === "open") return;
    const way = policy === "invitation" ? "Ask for an invitation." : "Ask the operator.";
    throw new GatewayError(
      "forbidden",
      `This installation lets nobody sign up by themselves. ${way}`,
    );
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
    await transaction
      .insertInto("user_accounts")
      .values({
        id: newId("acct", nowMs),
        account_id: userId,
        provider_id: "credential",
        user_id: userId,
        password,
        created_at: now,
        updated_at: now,
      })
      .execute();
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
