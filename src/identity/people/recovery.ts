import type { Kysely, Transaction } from "kysely";
import { brand } from "../../platform/kernel/brand.ts";
import { dayMs, hourMs, type Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { NamedWindows } from "../../platform/rate-windows/named-windows.ts";
import type { Mailer } from "../../platform/notify/mailer.ts";
import type { UserLinks } from "./links/user-links.ts";
import type { BreachedPasswords } from "./sign-in/breached-passwords.ts";
import type { PasswordHasher } from "./sign-in/password-hasher.ts";
import type { PeopleTables } from "./people-tables.ts";
import { insertPassword } from "./user-store.ts";

/** Lifetimes of a link that was sent, and of one that an operator passes on. */
const sentLifeMs = hourMs;
const handedLifeMs = dayMs;
const verificationLifeMs = dayMs;

/**
 * The most mails that one address receives within an hour, from all requests. Further ones are not
 * sent.
 */
const mailsMax = 5;

interface RecoveryOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  links: UserLinks;
  hasher: PasswordHasher;
  breached: BreachedPasswords;
  mailer: Mailer | undefined;
  /**
   * Returns where people reach the service, without a trailing slash. Links never take it from a
   * request.
   */
  publicUrl(): string;
  /** Called when an address was confirmed. */
  onVerified(): void;
  /** Called with a mail that could not be sent. */
  onMailError(error: unknown): void;
}

const noMail = (): GatewayError =>
  new GatewayError(
    "not_configured",
    "This installation sends no mail. Ask its operator for a link to choose another password.",
  );

/** Password resets, and the confirmation of addresses. */
export class Recovery {
  private readonly mails: NamedWindows;
  private sending: Promise<void> = Promise.resolve();

  constructor(private readonly options: RecoveryOptions) {
    this.mails = new NamedWindows(options.clock, { windowMs: hourMs, slotMs: 60_000 });
  }

  /** Whether links can be sent. */
  get sendsMail(): boolean {
    return this.options.mailer !== undefined;
  }

  /**
   * Sends a link to choose another password, where this address has an account. Neither the answer
   * nor its timing reveals whether it has one: the lookup and the mail happen afterwards. Throws
   * `not_configured`.
   */
  requestReset(email: string): void {
    if (this.options.mailer === undefined) throw noMail();
    this.afterwards(async () => {
      const user = await this.options.database
        .selectFrom("users")
        .select(["id", "blocked_at_ms"])
        .where("email", "=", email)
        .executeTakeFirst();
      if (user === undefined || user.blocked_at_ms !== null || !this.mayMail(email)) return;
      const { token } = await this.options.links.issue("password", {
        userId: user.id,
        email,
        byMail: true,
        lifeMs: sentLifeMs,
      });
      await this.options.mailer?.send({
        to: email,
        subject: `Choose another password for ${brand.productName}`,
        text:
          "Another password was requested for your account, probably by you. The link works once, within an hour:\n\n" +
          `${this.options.publicUrl()}/reset-password?token=${token}\n\nIf it was not you, there is nothing to do.\n`,
      });
    });
  }

  /** Creates a link to choose another password, for an operator to pass on. */
  async issueReset({
    userId,
    email,
  }: {
    userId: string;
    email: string;
  }): Promise<{ url: string; expiresAtMs: number }> {
    const { token, expiresAtMs } = await this.options.links.issue("password", {
      userId,
      email,
      byMail: false,
      lifeMs: handedLifeMs,
    });
    return { url: `${this.options.publicUrl()}/reset-password?token=${token}`, expiresAtMs };
  }

  /** Returns whether a link to choose another password is valid now. */
  acceptsReset(token: string): Promise<boolean> {
    return this.options.links.accepts("password", token);
  }

  /** Returns whether a link that confirms an address is valid now. */
  async acceptsVerification(token: string): Promise<boolean> {
    const { links } = this.options;
    return (await links.accepts("email", token)) || (await links.accepts("email-change", token));
  }

  /**
   * Sets another password by a link, and ends every session, every other link to choose one, and a
   * change of the address that waits for its confirmation: someone else may have asked for it.
   * Throws `forbidden`.
   */
  async reset(token: string, password: string): Promise<void> {
    const { links, hasher, breached, database } = this.options;
    await links.assertAccepts("password", token);
    await breached.assertUnknown(password);
    hasher.assertRoom();
    // Before the transaction: hashing takes time, and settlements wait behind transactions.
    const hash = await hasher.hash(password);
    await database.transaction().execute(async (transaction) => {
      const { userId, email, byMail } = await links.take(transaction, "password", token);
      await this.setPassword(transaction, { userId, hash });
      await transaction.deleteFrom("user_sessions").where("user_id", "=", userId).execute();
      await this.forgetEmailChange(userId, transaction);
      if (byMail) await markVerified(transaction, { userId, email });
    });
    this.options.onVerified();
  }

  /**
   * Ends a change of the address that waits for its confirmation, such as when a user chooses another
   * password: who knew the earlier one may have asked for it.
   */
  async forgetEmailChange(
    userId: string,
    database: Kysely<PeopleTables> = this.options.database,
  ): Promise<void> {
    await database
      .deleteFrom("user_links")
      .where("user_id", "=", userId)
      .where("purpose", "=", "email-change")
      .execute();
  }

  /** Sends a link that confirms an address. Throws `not_configured`. */
  requestVerification({ userId, email }: { userId: string; email: string }): void {
    if (this.options.mailer === undefined)
      throw new GatewayError("not_configured", "This installation sends no mail.");
    this.afterwards(async () => {
      if (!this.mayMail(email)) return;
      const { token } = await this.options.links.issue("email", {
        userId,
        email,
        byMail: true,
        lifeMs: verificationLifeMs,
      });
      await this.options.mailer?.send({
        to: email,
        subject: `Confirm your address for ${brand.productName}`,
        text:
          "Confirm that this address is yours. The link works once, within a day:\n\n" +
          `${this.options.publicUrl()}/verify-email?token=${token}\n`,
      });
    });
  }

  /** Throws `not_configured` where no mail is sent. */
  assertMail(): void {
    if (this.options.mailer === undefined)
      throw new GatewayError("not_configured", "This installation sends no mail.");
  }

  /**
   * Sends a link to a user's new address, or a notice where that address already has an account.
   * The answer does not reveal which.
   */
  requestEmailChange({
    userId,
    oldEmail,
    email,
  }: {
    userId: string;
    oldEmail: string;
    email: string;
  }): void {
    this.assertMail();
    this.afterwards(async () => {
      const { database, links, mailer, publicUrl } = this.options;
      const holder = await database
        .selectFrom("users")
        .select("id")
        .where("email", "=", email)
        .executeTakeFirst();
      if (!this.mayMail(email)) return;
      if (holder !== undefined) {
        await mailer?.send({
          to: email,
          subject: `Your address at ${brand.productName}`,
          text: "This address was entered for another account. It is yours already, so nothing was changed.\n",
        });
        return;
      }
      const { token } = await links.issue("email-change", {
        userId,
        email,
        byMail: true,
        lifeMs: verificationLifeMs,
      });
      await mailer?.send({
        to: email,
        subject: `Confirm your new address for ${brand.productName}`,
        text:
          `Confirm that ${oldEmail} is to sign in with this address from now on. The link works once, within a day:\n\n` +
          `${publicUrl()}/verify-email?token=${token}\n\nIf it was not you, there is nothing to do.\n`,
      });
    });
  }

  /**
   * Changes a user's address to the one that a link was sent to, and notifies the previous one.
   * Throws `forbidden`.
   */
  private async changeEmail(token: string): Promise<void> {
    const { database, links, mailer } = this.options;
    const before = await database
      .transaction()
      .execute(async (transaction) => {
        const { userId, email } = await links.take(transaction, "email-change", token);
        const user = await transaction
          .selectFrom("users")
          .select("email")
          .where("id", "=", userId)
          .executeTakeFirst();
        await transaction
          .updateTable("users")
          .set({ email, email_verified: 1 })
          .where("id", "=", userId)
          .execute();
        await transaction
          .deleteFrom("user_links")
          .where("user_id", "=", userId)
          .where("used_at_ms", "is", null)
          .execute();
        return user?.email;
      })
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        throw new GatewayError("conflict", "Another account has this address by now.");
      });
    if (before === undefined) return;
    this.afterwards(async () =>
      mailer?.send({
        to: before,
        subject: `Your address at ${brand.productName} was changed`,
        text: "Your account signs in with another address from now on. If it was not you, tell the operator of the service.\n",
      }),
    );
  }

  /** Confirms a user's present or new address. Throws `forbidden`. */
  async verify(token: string): Promise<void> {
    const { database, links } = this.options;
    if (await links.accepts("email-change", token)) return this.changeEmail(token);
    await database
      .transaction()
      .execute(async (transaction) =>
        markVerified(transaction, await links.take(transaction, "email", token)),
      );
    this.options.onVerified();
  }

  /** Resolves when no mail is being sent. */
  idle(): Promise<void> {
    return this.sending;
  }

  /** Returns whether an address may receive one more mail within this hour, and counts it. */
  mayMail(email: string): boolean {
    return this.mails.tryAdd(email, { limit: mailsMax });
  }

  /** Runs work in the background, after the answer. */
  afterwards(work: () => Promise<void>): void {
    const done = work().catch((error: unknown) => this.options.onMailError(error));
    this.sending = Promise.all([this.sending, done]).then(() => undefined);
  }

  /**
   * Sets the password. A person who came by a provider or a passkey gets one for the first time.
   */
  private async setPassword(
    transaction: Transaction<PeopleTables>,
    { userId, hash }: { userId: string; hash: string },
  ): Promise<void> {
    const nowMs = this.options.clock.nowMs();
    const changed = await transaction
      .updateTable("user_accounts")
      .set({ password: hash, updated_at: new Date(nowMs).toISOString() })
      .where("user_id", "=", userId)
      .where("provider_id", "=", "credential")
      .returning("id")
      .executeTakeFirst();
    if (changed !== undefined) return;
    await insertPassword(transaction, { userId, password: hash, nowMs });
  }
}

/**
 * Marks an address confirmed, only while the user still has the address that the link was sent to.
 */
async function markVerified(
  transaction: Transaction<PeopleTables>,
  { userId, email }: { userId: string; email: string },
): Promise<void> {
  await transaction
    .updateTable("users")
    .set({ email_verified: 1 })
    .where("id", "=", userId)
    .where("email", "=", email)
    .execute();
}
