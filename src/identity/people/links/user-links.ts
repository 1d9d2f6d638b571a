import type { Transaction } from "kysely";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { PeopleTables } from "../people-tables.ts";
import { newOneTimeToken, type LinkParts } from "./one-time-links.ts";

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
  constructor(private readonly parts: LinkParts) {}

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
