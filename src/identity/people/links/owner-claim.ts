import type { Transaction } from "kysely";
import { dayMs } from "../../../platform/kernel/clock.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { PeopleTables } from "../people-tables.ts";
import { newOneTimeToken, type LinkParts } from "./one-time-links.ts";

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
