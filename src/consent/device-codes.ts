import { randomInt } from "node:crypto";
import type { Kysely } from "kysely";
import type { SecretHasher } from "../identity/keys/secret-hasher.ts";
import { isScope, type Scope } from "../identity/keys/scopes.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { randomBase62 } from "../platform/kernel/ids.ts";
import { isUniqueViolation } from "../platform/storage/storage-error.ts";
import type { ConsentTables } from "./consent-tables.ts";
import { termsOf, termsText, type Terms } from "./connections.ts";

/** Consonants that are not easily confused and spell no words (RFC 8628, section 6.1). */
const userCodeAlphabet = "BCDFGHJKLMNPQRSTVWXZ";
const userCodeLength = 8;

/** Seconds that a device code is valid, and the initial seconds between a client's polls. */
const deviceCodeLifetimeS = 15 * 60;
const intervalS = 5;
/**
 * Seconds that a client which polls too fast has to add to its interval (RFC 8628, section 3.5).
 */
const slowDownS = 5;
/** Milliseconds by which a poll may be early, because of the client's timers and network delays. */
const paceToleranceMs = 500;
/** The most pending codes of one address. */
const pendingPerAddressMax = 60;

/** A device that requests to be connected. */
export interface DeviceRequest {
  clientId: string | null;
  clientName: string;
  scopes: readonly Scope[];
  /** Whether refresh tokens are requested. */
  offline: boolean;
  keyLabel: string | null;
  /** The address that requested it, which is shown to the person who approves. */
  address: string;
  userAgent: string;
}

/** A request that waits for a person. */
export interface PendingDevice extends DeviceRequest {
  createdAtMs: number;
  expiresAtMs: number;
}

/** A person's decision: the terms of the connection, or none. */
export interface DeviceDecision {
  userCode: string;
  userId: string;
  workspaceId: string;
  terms: Terms | null;
}

/** A request that was approved and taken by its device. */
interface ApprovedDevice extends DeviceRequest {
  userId: string;
  workspaceId: string;
  terms: Terms;
}

/** The outcome of a poll (contract: "Device authorization"). */
export type PollOutcome =
  | { state: "approved"; device: ApprovedDevice }
  | { state: "authorization_pending" | "slow_down" | "access_denied" | "expired_token" };

type Row = ConsentTables["device_codes"];

const requestOf = (row: Row): DeviceRequest => ({
  clientId: row.client_id,
  clientName: row.client_name,
  scopes: (JSON.parse(row.scopes) as string[]).filter(isScope),
  offline: row.offline === 1,
  keyLabel: row.key_label,
  address: row.address,
  userAgent: row.user_agent,
});

function newUserCode(): string {
  let code = "";
  for (let place = 0; place < userCodeLength; place += 1)
    code += userCodeAlphabet[randomInt(userCodeAlphabet.length)];
  return code;
}

/** Normalises a user code as people type it: case, dashes and spaces are ignored. */
export const plainUserCode = (typed: string): string =>
  typed
    .toUpperCase()
    .replaceAll(/[^A-Z]/g, "")
    .slice(0, 20);

/** Formats a user code for people. */
export const shownUserCode = (plain: string): string => `${plain.slice(0, 4)}-${plain.slice(4)}`;

/** Stores device codes (RFC 8628) as keyed hashes; each makes one connection at most. */
export class DeviceCodes {
  private readonly database: Kysely<ConsentTables>;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;

  constructor(options: { database: Kysely<ConsentTables>; hasher: SecretHasher; clock: Clock }) {
    this.database = options.database;
    this.hasher = options.hasher;
    this.clock = options.clock;
  }

  /**
   * Starts a request; undefined where its address has too many pending ones. The codes are returned
   * only here.
   */
  async start(
    request: DeviceRequest,
  ): Promise<
    { deviceCode: string; userCode: string; expiresInS: number; intervalS: number } | undefined
  > {
    if ((await this.pendingCount(request.address)) >= pendingPerAddressMax) return undefined;
    const deviceCode = randomBase62(48);
    for (;;) {
      const userCode = newUserCode();
      try {
        await this.insert(request, { deviceCode, userCode });
        return {
          deviceCode,
          userCode: shownUserCode(userCode),
          expiresInS: deviceCodeLifetimeS,
          intervalS,
        };
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
      }
    }
  }

  /** Returns the pending request of a user code; undefined where there is none. */
  async findPending(userCode: string): Promise<PendingDevice | undefined> {
    const row = await this.database
      .selectFrom("device_codes")
      .selectAll()
      .where("user_code_hash", "=", this.userHash(userCode))
      .where("status", "=", "pending")
      .where("expires_at_ms", ">", this.clock.nowMs())
      .executeTakeFirst();
    return (
      row && { ...requestOf(row), createdAtMs: row.created_at_ms, expiresAtMs: row.expires_at_ms }
    );
  }

  /**
   * Returns a person's earlier decision about a code, while it is kept; undefined where there was
   * none.
   */
  async decisionOf(
    userCode: string,
    userId: string,
  ): Promise<{ clientName: string; approved: boolean } | undefined> {
    const row = await this.database
      .selectFrom("device_codes")
      .select(["client_name", "status"])
      .where("user_code_hash", "=", this.userHash(userCode))
      .where("decided_by_user_id", "=", userId)
      .where("expires_at_ms", ">", this.clock.nowMs())
      .executeTakeFirst();
    return row && { clientName: row.client_name, approved: row.status !== "denied" };
  }

  /** Approves or declines a request once. Returns false where it is no longer pending. */
  async decide({ userCode, userId, workspaceId, terms }: DeviceDecision): Promise<boolean> {
    const row = await this.database
      .updateTable("device_codes")
      .set({
        status: terms === null ? "denied" : "approved",
        decided_by_user_id: userId,
        workspace_id: workspaceId,
        terms: terms === null ? null : termsText(terms),
      })
      .where("user_code_hash", "=", this.userHash(userCode))
      .where("status", "=", "pending")
      .where("expires_at_ms", ">", this.clock.nowMs())
      .returning("device_code_hash")
      .executeTakeFirst();
    return row !== undefined;
  }

  /**
   * Returns the outcome of a poll. A code is valid only for the client that it was created for. Of
   * concurrent polls, one receives the approval.
   */
  async poll(deviceCode: string, clientId?: string): Promise<PollOutcome> {
    const hash = this.hasher.hash(deviceCode);
    const row = await this.database
      .selectFrom("device_codes")
      .selectAll()
      .where("device_code_hash", "=", hash)
      .executeTakeFirst();
    const nowMs = this.clock.nowMs();
    if (row === undefined || row.expires_at_ms <= nowMs) return { state: "expired_token" };
    if (clientId !== undefined && row.client_id !== null && clientId !== row.client_id)
      return { state: "expired_token" };
    if (row.status === "denied") return { state: "access_denied" };
    if (row.status === "pending") return { state: await this.pace(row, nowMs) };
    const taken =
      row.status !== "approved"
        ? undefined
        : await this.database
            .updateTable("device_codes")
            .set({ status: "consumed" })
            .where("device_code_hash", "=", hash)
            .where("status", "=", "approved")
            .returning("device_code_hash")
            .executeTakeFirst();
    if (taken === undefined || row.terms === null) return { state: "expired_token" };
    const approved = {
      userId: row.decided_by_user_id ?? "",
      workspaceId: row.workspace_id ?? "",
      terms: termsOf(row.terms),
    };
    return { state: "approved", device: { ...requestOf(row), ...approved } };
  }

  /** Deletes requests that ended more than an hour ago. */
  async removeEnded(): Promise<void> {
    await this.database
      .deleteFrom("device_codes")
      .where("expires_at_ms", "<", this.clock.nowMs() - 3_600_000)
      .execute();
  }

  private async pace(row: Row, nowMs: number): Promise<"authorization_pending" | "slow_down"> {
    const dueMs =
      row.last_polled_at_ms === null
        ? 0
        : row.last_polled_at_ms + row.interval_s * 1_000 - paceToleranceMs;
    const tooFast = nowMs < dueMs;
    await this.database
      .updateTable("device_codes")
      .set({ last_polled_at_ms: nowMs, interval_s: row.interval_s + (tooFast ? slowDownS : 0) })
      .where("device_code_hash", "=", row.device_code_hash)
      .where("status", "=", "pending")
      .execute();
    return tooFast ? "slow_down" : "authorization_pending";
  }

  private async insert(
    request: DeviceRequest,
    { deviceCode, userCode }: { deviceCode: string; userCode: string },
  ): Promise<void> {
    const nowMs = this.clock.nowMs();
    await this.database
      .insertInto("device_codes")
      .values({
        device_code_hash: this.hasher.hash(deviceCode),
        user_code_hash: this.userHash(userCode),
        client_id: request.clientId,
        client_name: request.clientName,
        scopes: JSON.stringify(request.scopes),
        offline: request.offline ? 1 : 0,
        key_label: request.keyLabel,
        address: request.address,
        user_agent: request.userAgent,
        created_at_ms: nowMs,
        expires_at_ms: nowMs + deviceCodeLifetimeS * 1_000,
        interval_s: intervalS,
        last_polled_at_ms: null,
        status: "pending",
        decided_by_user_id: null,
        workspace_id: null,
        terms: null,
      })
      .execute();
  }

  private userHash(userCode: string): string {
    return this.hasher.hash(`user code ${plainUserCode(userCode)}`);
  }

  private async pendingCount(address: string): Promise<number> {
    const { total } = await this.database
      .selectFrom("device_codes")
      .select((select) => select.fn.countAll<number | bigint | string>().as("total"))
      .where("address", "=", address)
      .where("status", "=", "pending")
      .where("expires_at_ms", ">", this.clock.nowMs())
      .executeTakeFirstOrThrow();
    return Number(total);
  }
}
