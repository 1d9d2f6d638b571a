import type { Kysely, Transaction } from "kysely";
import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { randomBase62 } from "../../platform/kernel/ids.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import type { PeopleTables } from "./people-tables.ts";

/** Characters of a token in a link: 43 of 62 are more than 256 bits. */
const tokenLength = 43;

/** Returns a new token for a link, and the hash that the database keeps of it. */
export function newOneTimeToken(hasher: SecretHasher): { token: string; hash: string } {
  const token = randomBase62(tokenLength);
  return { token, hash: hasher.hash(token) };
}

/** The database of links, the hasher of their tokens, and the clock by which they expire. */
export interface LinkParts {
  database: Kysely<PeopleTables>;
  hasher: SecretHasher;
  clock: Clock;
}

/** The purpose of a link. */
type LinkPurpose = "password" | "email" | "email-change";

/** The user and the address that a link proves. */
interface UserLink {
  userId: string;
  /** The address that the user had when the link was created, or is to have. */
  email: string;
  /**
   * Whether it was sent to that address, so that its use proves that the user receives mail there.
   */
  byMail: boolean;
}

const deadLink = (): GatewayError =>
  new GatewayError(
    "forbidden",
    "This link was used, has expired or was replaced by a newer one. Ask for another one.",
  );

/**
 * Links of users that work once and for a limited time. Their tokens are shown or sent once; the
 * database keeps hashes.
 */
export class UserLinks {
  private readonly parts: LinkParts;

  constructor(parts: LinkParts) {
    this.parts = parts;
  }

  /**
   * Creates the token of a link, which replaces the previous one. Expired links are deleted along
   * with it.
   */
  async issue(
    purpose: LinkPurpose,
    { userId, email, byMail, lifeMs }: UserLink & { lifeMs: number },
  ): Promise<{ token: string; expiresAtMs: number }> {
    const { token, hash } = newOneTimeToken(this.parts.hasher);
    const nowMs = this.parts.clock.nowMs();
    const expiresAtMs = nowMs + lifeMs;
    await this.parts.database.transaction().execute(async (transaction) => {
      await transaction
        .deleteFrom("user_links")
        .where((where) =>
          where.or([
            where.and([where("user_id", "=", userId), where("purpose", "=", purpose)]),
            where("expires_at_ms", "<=", nowMs),
          ]),
        )
        .execute();
      await transaction
        .insertInto("user_links")
        .values({
          token_hash: hash,
          purpose,
          user_id: userId,
          email,
          by_mail: byMail ? 1 : 0,
          created_at_ms: nowMs,
          expires_at_ms: expiresAtMs,
          used_at_ms: null,
        })
        .execute();
    });
    return { token, expiresAtMs };
  }

  /** Returns whether a token is valid now. */
  async accepts(purpose: LinkPurpose, token: string): Promise<boolean> {
    const row = await this.parts.database
      .selectFrom("user_links")
      .select("user_id")
      .where("token_hash", "=", this.parts.hasher.hash(token))
      .where("purpose", "=", purpose)
      .where("used_at_ms", "is", null)
      .where("expires_at_ms", ">", this.parts.clock.nowMs())
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Throws `forbidden` for a token that is not valid now. */
  async assertAccepts(purpose: LinkPurpose, token: string): Promise<void> {
    if (!(await this.accepts(purpose, token))) throw deadLink();
  }

  /** Consumes a token within a transaction. Throws `forbidden`. */
  async take(
    transaction: Transaction<PeopleTables>,
    purpose: LinkPurpose,
    token: string,
  ): Promise<UserLink> {
    const nowMs = this.parts.clock.nowMs();
    const row = await transaction
      .updateTable("user_links")
      .set({ used_at_ms: nowMs })
      .where("token_hash", "=", this.parts.hasher.hash(token))
      .where("purpose", "=", purpose)
      .where("used_at_ms", "is", null)
      .where("expires_at_ms", ">", nowMs)
      .returning(["user_id", "email", "by_mail"])
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
    return { userId: row.user_id, email: row.email, byMail: row.by_mail === 1 };
  }
}

const claimId = "owner";

const deadOwnerLink = (): GatewayError =>
  new GatewayError(
    "forbidden",
    "This link was used, has expired or was replaced. While the owner account is unclaimed, a restart prints another one.",
  );

/** Days for which a printed link works. A further start prints another one. */
const claimDays = 1;

/**
 * The claim of the owner account, which the first person gets who opens the link that the terminal
 * printed.
 */
export class OwnerClaim {
  private readonly parts: LinkParts;
  private claimed: boolean;

  private constructor(parts: LinkParts, claimed: boolean) {
    this.parts = parts;
    this.claimed = claimed;
  }

  static async open(parts: LinkParts): Promise<OwnerClaim> {
    const row = await parts.database
      .selectFrom("owner_claims")
      .select("claimed_at_ms")
      .where("id", "=", claimId)
      .executeTakeFirst();
    return new OwnerClaim(parts, row !== undefined && row.claimed_at_ms !== null);
  }

  /** Whether the owner account was claimed. Until then no other account can be created. */
  get isClaimed(): boolean {
    return this.claimed;
  }

  /**
   * Creates the token of a new link, which replaces the previous one; undefined once the account is
   * claimed.
   */
  async issue(): Promise<string | undefined> {
    if (this.claimed) return undefined;
    const { token, hash } = newOneTimeToken(this.parts.hasher);
    const values = {
      token_hash: hash,
      expires_at_ms: this.parts.clock.nowMs() + claimDays * dayMs,
    };
    await this.parts.database
      .insertInto("owner_claims")
      .values({ id: claimId, claimed_at_ms: null, user_id: null, ...values })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet(values).where("owner_claims.claimed_at_ms", "is", null),
      )
      .execute();
    return token;
  }

  /** Returns whether a token is valid now. */
  async accepts(token: string): Promise<boolean> {
    const row = await this.parts.database
      .selectFrom("owner_claims")
      .select("id")
      .where("token_hash", "=", this.parts.hasher.hash(token))
      .where("claimed_at_ms", "is", null)
      .where("expires_at_ms", ">", this.parts.clock.nowMs())
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Throws `forbidden` for a token that is not valid now. */
  async assertAccepts(token: string): Promise<void> {
    if (!(await this.accepts(token))) throw deadOwnerLink();
  }

  /** Consumes the token for a user within a transaction. Throws `forbidden`. */
  async take(
    transaction: Transaction<PeopleTables>,
    { token, userId }: { token: string; userId: string },
  ): Promise<void> {
    const nowMs = this.parts.clock.nowMs();
    const row = await transaction
      .updateTable("owner_claims")
      .set({ claimed_at_ms: nowMs, user_id: userId })
      .where("token_hash", "=", this.parts.hasher.hash(token))
      .where("claimed_at_ms", "is", null)
      .where("expires_at_ms", ">", nowMs)
      .returning("id")
      .executeTakeFirst();
    if (row === undefined) throw deadOwnerLink();
  }

  /** Marks the owner account as taken, once the transaction of `take` is committed. */
  markClaimed(): void {
    this.claimed = true;
  }
}
