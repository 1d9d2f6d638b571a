import type { Kysely } from "kysely";
import { brand } from "../../platform/lib/brand.ts";
import { dayMs, type Clock } from "../../platform/lib/clock.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import type { Mailer } from "../notify/mailer.ts";
import { newOneTimeToken } from "./one-time-token.ts";
import type { PeopleTables } from "./people-tables.ts";
import type { NewPerson, SignUp } from "./sign-up.ts";

interface PendingSignUpOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  hasher: SecretHasher;
  signUp: SignUp;
  mailer: Mailer | undefined;
  /** Where people reach the service, without a trailing slash. */
  publicUrl(): string;
  /** Whether an address may get one more mail within this hour. */
  mayMail(email: string): boolean;
  /** Does what nobody waits for, and tells of its failure. */
  afterwards(work: () => Promise<void>): void;
}

/**
 * Accounts of people whom nobody invited, as they wait for the confirmation of their address. Whoever has the address already
 * is told by mail; the asker learns nothing, neither from the answer nor from when it comes.
 */
export class PendingSignUps {
  private readonly options: PendingSignUpOptions;

  constructor(options: PendingSignUpOptions) {
    this.options = options;
  }

  /** Throws what `SignUp.prepare` does, whoever has the address. */
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
            "Somebody, probably you, wanted to make an account with this address. There is one already: sign in with it, or choose " +
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
          "Confirm that this address is yours, and your account is made. The link works once, within a day:\n\n" +
          `${publicUrl()}/verify-email?token=${token}\n\nIf it was not you, there is nothing to do.\n`,
      });
    });
  }

  /** Whether a link would make an account now. */
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

  /** Makes the account that a link is for; false where the link is of another kind, or dead. */
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
