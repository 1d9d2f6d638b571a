import type { Kysely, Transaction } from "kysely";
import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import { newOneTimeToken } from "./one-time-token.ts";
import type { PeopleTables } from "./people-tables.ts";

/** What a link is good for. */
export type LinkPurpose = "password" | "email" | "email-change";

/** What a link proves. */
export interface UserLink {
  userId: string;
  /** The address that the user had when it was made, or is to have. */
  email: string;
  /** Whether it was sent to that address, so that whoever has it reads mail there. */
  byMail: boolean;
}

const deadLink = (): GatewayError =>
  new GatewayError(
    "forbidden",
    "This link was used, has expired or was replaced by a newer one. Ask for another one.",
  );

/** Links of users that work once and for a while. Their tokens are shown or sent once; the database keeps hashes. */
export class UserLinks {
  private readonly database: Kysely<PeopleTables>;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;

  constructor(options: { database: Kysely<PeopleTables>; hasher: SecretHasher; clock: Clock }) {
    this.database = options.database;
    this.hasher = options.hasher;
    this.clock = options.clock;
  }

  /** Makes the token of a link, in place of the one before; those that have ended are forgotten with it. */
  async issue(
    purpose: LinkPurpose,
    { userId, email, byMail, lifeMs }: UserLink & { lifeMs: number },
  ): Promise<{ token: string; expiresAtMs: number }> {
    const { token, hash } = newOneTimeToken(this.hasher);
    const nowMs = this.clock.nowMs();
    const expiresAtMs = nowMs + lifeMs;
    await this.database.transaction().execute(async (transaction) => {
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

  /** Whether a token would be taken now. */
  async accepts(purpose: LinkPurpose, token: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("user_links")
      .select("user_id")
      .where("token_hash", "=", this.hasher.hash(token))
      .where("purpose", "=", purpose)
      .where("used_at_ms", "is", null)
      .where("expires_at_ms", ">", this.clock.nowMs())
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Throws `forbidden` for a token that would not be taken now. */
  async assertAccepts(purpose: LinkPurpose, token: string): Promise<void> {
    if (!(await this.accepts(purpose, token))) throw deadLink();
  }

  /** Takes a token, once, together with what else the transaction writes. Throws `forbidden`. */
  async take(
    transaction: Transaction<PeopleTables>,
    purpose: LinkPurpose,
    token: string,
  ): Promise<UserLink> {
    const nowMs = this.clock.nowMs();
    const row = await transaction
      .updateTable("user_links")
      .set({ used_at_ms: nowMs })
      .where("token_hash", "=", this.hasher.hash(token))
      .where("purpose", "=", purpose)
      .where("used_at_ms", "is", null)
      .where("expires_at_ms", ">", nowMs)
      .returning(["user_id", "email", "by_mail"])
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
    return { userId: row.user_id, email: row.email, byMail: row.by_mail === 1 };
  }
}
