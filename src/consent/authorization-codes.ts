import { createHash, timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import type { SecretHasher } from "../identity/keys/secret-hasher.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { randomBase62 } from "../platform/kernel/ids.ts";
import { termsOf, termsText, type Terms } from "./connections.ts";
import type { ConsentTables } from "./consent-tables.ts";

/** Lifetime of an authorization code in milliseconds (contract: "Size and count bounds"). */
const codeLifetimeMs = 10 * 60_000;

/** Characters of a code: 43 of 62 are more than 256 bits. */
const codeLength = 43;

/** The most open codes of one key or one person. More of them are a mistake or an attack. */
const openCodesMax = 100;

/**
 * The purpose of a code: it is exchanged for a key that another key requested, a key for an app, or
 * a token for an OAuth client.
 */
type CodePurpose = "mint" | "exchange" | "oauth";

/** A stored authorization code (RFC 6749, section 4.1.2; RFC 7636). */
export interface AuthorizationCode {
  purpose: CodePurpose;
  clientId: string | null;
  clientName: string;
  callbackUrl: string;
  challenge: string;
  method: ChallengeMethod;
  userId: string;
  workspaceId: string;
  /** The key that requested another one; null where a person approved it in the browser. */
  parentKeyId: string | null;
  terms: Terms;
  /** The resource that the token is for (RFC 8707). */
  resource: string | null;
}

/** A presented code. */
interface PresentedCode {
  code: string;
  purposes: readonly CodePurpose[];
  verifier: string;
  /** Has to be the code's own method, where it is named. */
  method?: ChallengeMethod | undefined;
  /** Has to match the code's own, where named. */
  clientId?: string | null;
  callbackUrl?: string;
}

/**
 * The code that was taken, or why none was. A replayed code names the key that it created before.
 */
type CodeOutcome =
  | { ok: true; code: AuthorizationCode }
  | { ok: false; reason: "unknown" | "expired" | "mismatch" }
  | { ok: false; reason: "replayed"; madeKeyId: string | null };

type Row = ConsentTables["authorization_codes"];

const fromRow = (row: Row): AuthorizationCode => ({
  purpose: row.purpose as CodePurpose,
  clientId: row.client_id,
  clientName: row.client_name,
  callbackUrl: row.callback_url,
  challenge: row.code_challenge,
  method: row.code_challenge_method as ChallengeMethod,
  userId: row.user_id,
  workspaceId: row.workspace_id,
  parentKeyId: row.parent_key_id,
  terms: termsOf(row.terms),
  resource: row.resource,
});

/** Stores authorization codes as keyed hashes; each is consumed once. */
export class AuthorizationCodes {
  private readonly database: Kysely<ConsentTables>;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;

  constructor(options: { database: Kysely<ConsentTables>; hasher: SecretHasher; clock: Clock }) {
    this.database = options.database;
    this.hasher = options.hasher;
    this.clock = options.clock;
  }

  /**
   * Creates a code; undefined where its key or person has too many open ones. The plain code is
   * returned only here.
   */
  async issue(
    wanted: AuthorizationCode,
  ): Promise<{ code: string; createdAtMs: number } | undefined> {
    const nowMs = this.clock.nowMs();
    if ((await this.openCount(wanted, nowMs)) >= openCodesMax) return undefined;
    const code = randomBase62(codeLength);
    await this.database
      .insertInto("authorization_codes")
      .values({
        code_hash: this.hasher.hash(code),
        purpose: wanted.purpose,
        client_id: wanted.clientId,
        client_name: wanted.clientName,
        callback_url: wanted.callbackUrl,
        code_challenge: wanted.challenge,
        code_challenge_method: wanted.method,
        user_id: wanted.userId,
        workspace_id: wanted.workspaceId,
        parent_key_id: wanted.parentKeyId,
        terms: termsText(wanted.terms),
        resource: wanted.resource,
        created_at_ms: nowMs,
        expires_at_ms: nowMs + codeLifetimeMs,
        used_at_ms: null,
        made_key_id: null,
      })
      .execute();
    return { code, createdAtMs: nowMs };
  }

  /**
   * Takes a code once: of concurrent requests that present it, one succeeds. A wrong verifier does
   * not consume it.
   */
  async take({
    code,
    purposes,
    verifier,
    method,
    clientId,
    callbackUrl,
  }: PresentedCode): Promise<CodeOutcome> {
    const hash = this.hasher.hash(code);
    const row = await this.database
      .selectFrom("authorization_codes")
      .selectAll()
      .where("code_hash", "=", hash)
      .executeTakeFirst();
    if (row === undefined || !purposes.includes(row.purpose as CodePurpose))
      return { ok: false, reason: "unknown" };
    const found = fromRow(row);
    if (clientId !== undefined && clientId !== found.clientId)
      return { ok: false, reason: "mismatch" };
    if (callbackUrl !== undefined && callbackUrl !== found.callbackUrl)
      return { ok: false, reason: "mismatch" };
    if (method !== undefined && method !== found.method) return { ok: false, reason: "mismatch" };
    if (!verifies(verifier, found)) return { ok: false, reason: "mismatch" };
    if (row.used_at_ms !== null)
      return { ok: false, reason: "replayed", madeKeyId: row.made_key_id };
    const nowMs = this.clock.nowMs();
    if (row.expires_at_ms <= nowMs) return { ok: false, reason: "expired" };
    const taken = await this.database
      .updateTable("authorization_codes")
      .set({ used_at_ms: nowMs })
      .where("code_hash", "=", hash)
      .where("used_at_ms", "is", null)
      .returning("code_hash")
      .executeTakeFirst();
    return taken === undefined
      ? { ok: false, reason: "replayed", madeKeyId: null }
      : { ok: true, code: found };
  }

  /**
   * Notes the key that a code created, so that a replay of the code can revoke it (RFC 9700,
   * section 4.5).
   */
  async noteMade(code: string, keyId: string): Promise<void> {
    await this.database
      .updateTable("authorization_codes")
      .set({ made_key_id: keyId })
      .where("code_hash", "=", this.hasher.hash(code))
      .execute();
  }

  /**
   * Deletes codes that ended more than a day ago. Until then a replay can be distinguished from a
   * code that never existed.
   */
  async removeEnded(): Promise<void> {
    await this.database
      .deleteFrom("authorization_codes")
      .where("expires_at_ms", "<", this.clock.nowMs() - 86_400_000)
      .execute();
  }

  private async openCount(
    { userId, parentKeyId }: AuthorizationCode,
    nowMs: number,
  ): Promise<number> {
    const { total } = await this.database
      .selectFrom("authorization_codes")
      .select((select) => select.fn.countAll<number | bigint | string>().as("total"))
      .where("user_id", "=", userId)
      .where("parent_key_id", parentKeyId === null ? "is" : "=", parentKeyId)
      .where("used_at_ms", "is", null)
      .where("expires_at_ms", ">", nowMs)
      .executeTakeFirstOrThrow();
    return Number(total);
  }
}

/** The derivation of a challenge from its verifier (RFC 7636, section 4.2). */
export type ChallengeMethod = "S256" | "plain";

/** Bounds of a verifier's length in characters (RFC 7636, section 4.1). */
export const verifierCharacters = { min: 43, max: 128 } as const;

/** Matches a challenge or verifier: only unreserved characters of RFC 3986. */
export const pkcePattern = /^[A-Za-z0-9._~-]{43,128}$/;

/** Returns whether a challenge was derived from this verifier, compared in constant time. */
function verifies(
  verifier: string,
  { challenge, method }: { challenge: string; method: ChallengeMethod },
): boolean {
  const made =
    method === "S256" ? createHash("sha256").update(verifier).digest("base64url") : verifier;
  const given = Buffer.from(challenge);
  const expected = Buffer.from(made);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
