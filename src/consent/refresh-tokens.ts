import type { Kysely } from "kysely";
import { newSecret, type SecretHasher } from "../identity/keys/secret-hasher.ts";
import { brand } from "../platform/kernel/brand.ts";
import { dayMs, type Clock } from "../platform/kernel/clock.ts";
import type { ConsentTables } from "./consent-tables.ts";

/** Lifetime in milliseconds of a refresh token that is not used. */
const lifetimeMs = 90 * dayMs;

/**
 * The outcome of a presented refresh token. A used one names the connection whose tokens have to be
 * revoked.
 */
type RefreshOutcome =
  | { ok: true; connectionId: string; refreshToken: string }
  | { ok: false; reason: "unknown" }
  | { ok: false; reason: "reused"; connectionId: string };

/**
 * Stores refresh tokens as keyed hashes; each is used once and replaced (OAuth 2.1, section 4.3.1).
 */
export class RefreshTokens {
  private readonly database: Kysely<ConsentTables>;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;

  constructor(options: { database: Kysely<ConsentTables>; hasher: SecretHasher; clock: Clock }) {
    this.database = options.database;
    this.hasher = options.hasher;
    this.clock = options.clock;
  }

  /** Creates a token for a connection. */
  async issue(connectionId: string): Promise<string> {
    const token = newSecret(brand.refreshTokenPrefix);
    const nowMs = this.clock.nowMs();
    await this.database
      .insertInto("refresh_tokens")
      .values({
        token_hash: this.hasher.hash(token),
        connection_id: connectionId,
        created_at_ms: nowMs,
        expires_at_ms: nowMs + lifetimeMs,
        used_at_ms: null,
      })
      .execute();
    return token;
  }

  /** Uses a token and creates the next one. */
  async rotate(token: string): Promise<RefreshOutcome> {
    const hash = this.hasher.hash(token);
    const nowMs = this.clock.nowMs();
    const taken = await this.database
      .updateTable("refresh_tokens")
      .set({ used_at_ms: nowMs })
      .where("token_hash", "=", hash)
      .where("used_at_ms", "is", null)
      .where("expires_at_ms", ">", nowMs)
      .returning("connection_id")
      .executeTakeFirst();
    if (taken !== undefined) {
      return {
        ok: true,
        connectionId: taken.connection_id,
        refreshToken: await this.issue(taken.connection_id),
      };
    }
    const connectionId = await this.connectionOf(token);
    return connectionId === undefined
      ? { ok: false, reason: "unknown" }
      : { ok: false, reason: "reused", connectionId };
  }

  /**
   * Returns the id of a token's connection, whether or not the token was used; undefined where it
   * expired or never existed.
   */
  async connectionOf(token: string): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("refresh_tokens")
      .select("connection_id")
      .where("token_hash", "=", this.hasher.hash(token))
      .where("expires_at_ms", ">", this.clock.nowMs())
      .executeTakeFirst();
    return row?.connection_id;
  }

  /** Deletes tokens that have expired. */
  async removeEnded(): Promise<void> {
    await this.database
      .deleteFrom("refresh_tokens")
      .where("expires_at_ms", "<", this.clock.nowMs())
      .execute();
  }
}
