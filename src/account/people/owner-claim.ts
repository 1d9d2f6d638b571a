import type { Kysely, Transaction } from "kysely";
import type { Clock } from "../../platform/lib/clock.ts";
import { dayMs } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import { newOneTimeToken } from "./one-time-token.ts";
import type { PeopleTables } from "./people-tables.ts";

const claimId = "owner";

const deadLink = (): GatewayError =>
  new GatewayError(
    "forbidden",
    "This link was used, has expired or was replaced. While the owner account is unclaimed, a restart prints another one.",
  );

/** How long a printed link works; a further start prints another one. */
const claimDays = 1;

/** The one account that exists by right: whoever holds the link that the terminal printed becomes the owner. */
export class OwnerClaim {
  private readonly database: Kysely<PeopleTables>;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;
  private claimed: boolean;

  private constructor(options: {
    database: Kysely<PeopleTables>;
    hasher: SecretHasher;
    clock: Clock;
    claimed: boolean;
  }) {
    this.database = options.database;
    this.hasher = options.hasher;
    this.clock = options.clock;
    this.claimed = options.claimed;
  }

  static async open(options: {
    database: Kysely<PeopleTables>;
    hasher: SecretHasher;
    clock: Clock;
  }): Promise<OwnerClaim> {
    const row = await options.database
      .selectFrom("owner_claims")
      .select("claimed_at_ms")
      .where("id", "=", claimId)
      .executeTakeFirst();
    return new OwnerClaim({ ...options, claimed: row !== undefined && row.claimed_at_ms !== null });
  }

  /** Whether the owner account was claimed. Nobody else can sign up before. */
  get isClaimed(): boolean {
    return this.claimed;
  }

  /** Makes the token of a new link and ends the one before; undefined once the account is claimed. */
  async issue(): Promise<string | undefined> {
    if (this.claimed) return undefined;
    const { token, hash } = newOneTimeToken(this.hasher);
    const values = { token_hash: hash, expires_at_ms: this.clock.nowMs() + claimDays * dayMs };
    await this.database
      .insertInto("owner_claims")
      .values({ id: claimId, claimed_at_ms: null, user_id: null, ...values })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet(values).where("owner_claims.claimed_at_ms", "is", null),
      )
      .execute();
    return token;
  }

  /** Whether a token would be taken now. */
  async accepts(token: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("owner_claims")
      .select("id")
      .where("token_hash", "=", this.hasher.hash(token))
      .where("claimed_at_ms", "is", null)
      .where("expires_at_ms", ">", this.clock.nowMs())
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Throws `forbidden` for a token that would not be taken now. */
  async assertAccepts(token: string): Promise<void> {
    if (!(await this.accepts(token))) throw deadLink();
  }

  /** Takes the token for a user, once, together with what else the transaction writes. Throws `forbidden`. */
  async take(
    transaction: Transaction<PeopleTables>,
    { token, userId }: { token: string; userId: string },
  ): Promise<void> {
    const nowMs = this.clock.nowMs();
    const row = await transaction
      .updateTable("owner_claims")
      .set({ claimed_at_ms: nowMs, user_id: userId })
      .where("token_hash", "=", this.hasher.hash(token))
      .where("claimed_at_ms", "is", null)
      .where("expires_at_ms", ">", nowMs)
      .returning("id")
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
  }

  /** To be told once the transaction of `take` stands. */
  markClaimed(): void {
    this.claimed = true;
  }
}
