import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { sql, type Kysely } from "kysely";
import { dayMs, type Clock } from "../../../platform/kernel/clock.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { SecretHasher } from "../../keys/secret-hasher.ts";
import { countedAddress } from "../../../platform/rate-windows/named-windows.ts";
import type { PeopleTables } from "../people-tables.ts";

/**
 * Attempts within fifteen minutes. Guessing one password exceeds the limit of the pair; the other
 * limits stop attacks that are spread widely.
 */
const windowMs = 900_000;
const pairMax = 10;
const addressMax = 60;
const emailMax = 100;
/** The same for creating accounts where sign-up is open: each sends a mail to an unproven address. */
const signUpAddressMax = 10;
const signUpDomainMax = 50;

/** Milliseconds for which a network counts as known to an account after a sign-in from there. */
const knownMs = 90 * dayMs;
/**
 * Milliseconds within which a code of an authenticator app could be used twice: the library accepts
 * those of the neighbouring periods.
 */
const codeMs = 120_000;
const sweepMs = 60_000;

/**
 * The kinds of attempts. Each is counted separately, so that guesses of a password do not keep its
 * owner from resetting it.
 */
type AttemptPurpose = "sign-in" | "mail" | "provider" | "device";

/** An attempt to authenticate. */
export interface Attempt {
  address: string;
  email?: string | undefined;
  /** The value of the device cookie that the browser sent. */
  device?: string | undefined;
  purpose?: AttemptPurpose;
}

/** Thrown where too many attempts were made. */
export class SignInRefusalError extends GatewayError {
  /** Whether this is the first refusal within its window; the log has one entry for all of them. */
  readonly isFirst: boolean;

  constructor({
    endsInMs,
    isFirst,
    what = "attempts to sign in",
  }: { endsInMs: number; isFirst: boolean; what?: string }) {
    super("rate_limit_exceeded", `Too many ${what}. Wait, and try again.`, {
      retryAfterSeconds: Math.max(1, Math.ceil(endsInMs / 1000)),
      metadata: { window_seconds: windowMs / 1000 },
    });
    this.isFirst = isFirst;
  }
}

const normal = (email: string): string => email.trim().toLowerCase();

/**
 * Counts attempts to sign in, failed or not, in the database: all gateways count together, and a
 * restart forgets nothing. Addresses count by their network (/64 of IPv6). Attempts of strangers do
 * not lock out a user who has signed in before: a known browser is counted separately, and a known
 * network is exempt from the account's limit.
 */
export class SignInThrottle {
  private readonly database: Kysely<PeopleTables>;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;
  private readonly secret: string;
  private nextSweepMs = 0;

  constructor(options: {
    database: Kysely<PeopleTables>;
    hasher: SecretHasher;
    clock: Clock;
    secret: string;
  }) {
    this.database = options.database;
    this.hasher = options.hasher;
    this.clock = options.clock;
    this.secret = options.secret;
  }

  /**
   * Counts an attempt. Throws `SignInRefusalError` beyond the limit. Attempts without an e-mail, such as
   * passkeys, count by address alone.
   */
  async count({ address, email, device, purpose = "sign-in" }: Attempt): Promise<void> {
    await this.sweep();
    const network = countedAddress(address);
    const name = email === undefined ? undefined : normal(email);
    const known =
      name === undefined || device === undefined ? undefined : this.deviceOf(device, name);
    if (known !== undefined) return this.admit(`${purpose} device ${known} ${name}`, pairMax);
    await this.admit(`${purpose} address ${network}`, addressMax);
    if (name === undefined) return;
    await this.admit(`${purpose} pair ${network} ${name}`, pairMax);
    if (!(await this.isKnown(network, name)))
      await this.admit(`${purpose} email ${name}`, emailMax);
  }

  /**
   * Counts an account that a person creates without an invitation, by address and by the domain of
   * the mail, so that one machine cannot have mail sent to many people, nor many to one domain.
   * Throws `SignInRefusalError` beyond the limits.
   */
  async countSignUp({ address, email }: { address: string; email: string }): Promise<void> {
    const domain = normal(email).split("@").at(-1) ?? "";
    const what = "accounts were requested";
    await this.admit(`sign-up address ${countedAddress(address)}`, signUpAddressMax, what);
    await this.admit(`sign-up domain ${domain}`, signUpDomainMax, what);
  }

  /** Throws `SignInRefusalError` where an address has no attempt left; counts nothing. */
  async assertRoom({
    address,
    purpose = "sign-in",
  }: Pick<Attempt, "address" | "purpose">): Promise<void> {
    const nowMs = this.clock.nowMs();
    const row = await this.database
      .selectFrom("sign_in_windows")
      .select(["count", "ends_at_ms"])
      .where("name", "=", this.hasher.hash(`${purpose} address ${countedAddress(address)}`))
      .where("ends_at_ms", ">", nowMs)
      .executeTakeFirst();
    if (row !== undefined && row.count >= addressMax) {
      const what = purpose === "device" ? { what: "wrong codes" } : {};
      throw new SignInRefusalError({ endsInMs: row.ends_at_ms - nowMs, isFirst: false, ...what });
    }
  }

  /**
   * Records a successful sign-in: clears the user's own attempts, and remembers the network as
   * known to the account.
   */
  async succeeded({ address, email, device }: Attempt & { email: string }): Promise<void> {
    const [network, name] = [countedAddress(address), normal(email)];
    const known = device === undefined ? undefined : this.deviceOf(device, name);
    const own = [
      `sign-in pair ${network} ${name}`,
      ...(known === undefined ? [] : [`sign-in device ${known} ${name}`]),
    ];
    await this.database
      .deleteFrom("sign_in_windows")
      .where(
        "name",
        "in",
        own.map((each) => this.hasher.hash(each)),
      )
      .execute();
    const nowMs = this.clock.nowMs();
    const ends = { ends_at_ms: nowMs + knownMs };
    await this.database
      .insertInto("sign_in_windows")
      .values({
        name: this.hasher.hash(`known ${network} ${name}`),
        started_at_ms: nowMs,
        count: 1,
        ...ends,
      })
      .onConflict((conflict) => conflict.column("name").doUpdateSet(ends))
      .execute();
  }

  /**
   * Returns whether a code of an authenticator app is used for the first time (RFC 6238, section
   * 5.2).
   */
  async isFirstUse({ userId, code }: { userId: string; code: string }): Promise<boolean> {
    return (await this.take(`code ${userId} ${code}`, codeMs)).count === 1;
  }

  /**
   * Returns the value of a cookie that identifies this browser as one that the account was signed
   * in with.
   */
  newDevice(email: string): string {
    const nonce = randomBytes(16).toString("base64url");
    return `${nonce}.${this.seal(nonce, normal(email))}`;
  }

  /**
   * Returns the device that a cookie names for this account; undefined for forged cookies, and
   * those of other accounts.
   */
  private deviceOf(cookie: string, email: string): string | undefined {
    const [nonce = "", seal = ""] = cookie.split(".");
    const [expected, given] = [Buffer.from(this.seal(nonce, email)), Buffer.from(seal)];
    return expected.length === given.length && timingSafeEqual(expected, given) ? nonce : undefined;
  }

  private seal(nonce: string, email: string): string {
    return createHmac("sha256", this.secret).update(`device ${nonce} ${email}`).digest("base64url");
  }

  private async isKnown(network: string, email: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("sign_in_windows")
      .select("name")
      .where("name", "=", this.hasher.hash(`known ${network} ${email}`))
      .where("ends_at_ms", ">", this.clock.nowMs())
      .executeTakeFirst();
    return row !== undefined;
  }

  private async admit(name: string, limit: number, what?: string): Promise<void> {
    const { count, endsInMs } = await this.take(name, windowMs);
    if (count > limit)
      throw new SignInRefusalError({
        endsInMs,
        isFirst: count === limit + 1,
        ...(what !== undefined && { what }),
      });
  }

  /** Counts one attempt in a single statement, so that concurrent attempts are counted exactly. */
  private async take(name: string, lengthMs: number): Promise<{ count: number; endsInMs: number }> {
    const nowMs = this.clock.nowMs();
    const fresh = { started_at_ms: nowMs, ends_at_ms: nowMs + lengthMs, count: 1 };
    const unlessEnded = (
      column: string,
      more: number,
      instead: number,
    ) => sql<number>`case when sign_in_windows.ends_at_ms <= ${nowMs}
      then ${sql.lit(instead)} else ${sql.ref(`sign_in_windows.${column}`)} + ${sql.lit(more)} end`;
    const row = await this.database
      .insertInto("sign_in_windows")
      .values({ name: this.hasher.hash(name), ...fresh })
      .onConflict((conflict) =>
        conflict.column("name").doUpdateSet({
          started_at_ms: unlessEnded("started_at_ms", 0, fresh.started_at_ms),
          ends_at_ms: unlessEnded("ends_at_ms", 0, fresh.ends_at_ms),
          count: unlessEnded("count", 1, 1),
        }),
      )
      .returning(["count", "ends_at_ms"])
      .executeTakeFirstOrThrow();
    return { count: row.count, endsInMs: row.ends_at_ms - nowMs };
  }

  /** Deletes windows that have ended, so that addresses do not accumulate. */
  private async sweep(): Promise<void> {
    const nowMs = this.clock.nowMs();
    if (nowMs < this.nextSweepMs) return;
    this.nextSweepMs = nowMs + sweepMs;
    await this.database.deleteFrom("sign_in_windows").where("ends_at_ms", "<=", nowMs).execute();
  }
}
