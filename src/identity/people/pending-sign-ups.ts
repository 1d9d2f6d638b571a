import type { Kysely } from "kysely";
import { brand } from "../../platform/kernel/brand.ts";
import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import type { Mailer } from "../../platform/notify/mailer.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import { newOneTimeToken } from "./links/one-time-links.ts";
import type { PeopleTables } from "./people-tables.ts";
import type { NewPerson, SignUp } from "./sign-up.ts";

interface PendingSignUpOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  hasher: SecretHasher;
  signUp: SignUp;
  mailer: Mailer | undefined;
  /** Returns where people reach the service, without a trailing slash. */
  publicUrl(): string;
  /** Returns whether an address may receive one more mail within this hour. */
  mayMail(email: string): boolean;
  /** Runs work in the background, and logs its failure. */
  afterwards(work: () => Promise<void>): void;
}

/**
 * Sign-ups without an invitation that wait for the confirmation of their address. Where the address
 * has an account, its owner gets a mail instead. Neither the answer nor its timing reveals which.
 */
export class PendingSignUps {
  constructor(private readonly options: PendingSignUpOptions) {}

  /**
   * Requests a sign-up. Throws what `SignUp.prepare` does, whether or not the address has an
   * account.
   */
  async request(person: NewPerson): Promise<void> {
    const { database, clock, hasher, signUp, mailer, publicUrl, mayMail, afterwards } =
      this.options;
    const { password } = await signUp.prepare(person, { by: "policy" });
    const { email, name, referralCode } = person;
    afterwards(async () => {
      const holder = await database
        .selectFrom("users")
        .select("id")
        .where("email", "=", email)
        .executeTakeFirst();
      if (!mayMail(email)) return;
      if (holder !== undefined) {
        await mailer?.send({
          to: email,
          subject: `You have an account at ${brand.productName}`,
          text:
            "An account was requested with this address, probably by you. There is one already: sign in with it, or choose " +
            `another password:\n\n${publicUrl()}/reset-password\n\nIf it was not you, there is nothing to do.\n`,
        });
        return;
      }
      const { token, hash } = newOneTimeToken(hasher);
      const nowMs = clock.nowMs();
      await database
        .deleteFrom("pending_sign_ups")
        .where((where) =>
          where.or([where("email", "=", email), where("expires_at_ms", "<=", nowMs)]),
        )
        .execute();
      await database
        .insertInto("pending_sign_ups")
        .values({
          token_hash: hash,
          email,
          name,
          password,
          referral_code: referralCode ?? null,
          created_at_ms: nowMs,
          expires_at_ms: nowMs + dayMs,
        })
        .execute();
      await mailer?.send({
        to: email,
        subject: `Confirm your address for ${brand.productName}`,
        text:
          "Confirm that this address is yours to create your account. The link works once, within a day:\n\n" +
          `${publicUrl()}/verify-email?token=${token}\n\nIf it was not you, there is nothing to do.\n`,
      });
    });
  }

  /** Returns whether a link would create an account now. */
  async accepts(token: string): Promise<boolean> {
    const { database, clock, hasher } = this.options;
    const row = await database
      .selectFrom("pending_sign_ups")
      .select("email")
      .where("token_hash", "=", hasher.hash(token))
      .where("expires_at_ms", ">", clock.nowMs())
      .executeTakeFirst();
    return row !== undefined;
  }

  /**
   * Creates the account that a link is for. Returns false where the link is of another kind or no
   * longer valid.
   */
  async confirm(token: string): Promise<boolean> {
    const { database, clock, hasher, signUp } = this.options;
    const row = await database
      .deleteFrom("pending_sign_ups")
      .where("token_hash", "=", hasher.hash(token))
      .where("expires_at_ms", ">", clock.nowMs())
      .returningAll()
      .executeTakeFirst();
    if (row === undefined) return false;
    const person = {
      name: row.name,
      email: row.email,
      ...(row.referral_code === null ? {} : { referralCode: row.referral_code }),
    };
    await signUp.insert({
      person,
      password: row.password,
      entitlement: { by: "policy" },
      emailVerified: true,
    });
    return true;
  }
}
