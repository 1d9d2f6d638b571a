import type { Kysely } from "kysely";
import { brand } from "../../platform/kernel/brand.ts";
import { type Clock, DistinctTime } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { maskSecret, newSecret, type SecretHasher } from "./secret-hasher.ts";
import { coversScope, isScope, scopesWithin, type Scope } from "./scopes.ts";

/** A management key, with the keyed hash of its secret. */
export interface ManagementKey {
  /** An `mgk_` id. */
  id: string;
  hash: string;
  workspaceId: string;
  name: string;
  description: string | null;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs: number | null;
  revokedAtMs: number | null;
  revocationReason: string | null;
  /** The person who created it, or the key that created it; null where that was not recorded. */
  creatorUserId: string | null;
}

/** The state of a management key. */
type ManagementKeyStatus = "active" | "expired" | "revoked";

/** Returns the state of a key at a wall time in milliseconds. */
export function managementKeyStatus(
  { revokedAtMs, expiresAtMs }: ManagementKey,
  nowMs: number,
): ManagementKeyStatus {
  if (revokedAtMs !== null) return "revoked";
  return expiresAtMs !== null && expiresAtMs <= nowMs ? "expired" : "active";
}

interface ManagementKeyRow {
  id: string;
  hash: string;
  workspace_id: string;
  name: string;
  description: string | null;
  scopes: string;
  label: string;
  created_at_ms: number;
  expires_at_ms: number | null;
  revoked_at_ms: number | null;
  revocation_reason: string | null;
  creator_user_id: string | null;
}

/** The table of management keys. */
export interface ManagementKeyTables {
  management_keys: ManagementKeyRow;
}

const fromRow = (row: ManagementKeyRow): ManagementKey => ({
  id: row.id,
  hash: row.hash,
  workspaceId: row.workspace_id,
  name: row.name,
  description: row.description,
  scopes: (JSON.parse(row.scopes) as string[]).filter(isScope),
  label: row.label,
  createdAtMs: row.created_at_ms,
  expiresAtMs: row.expires_at_ms,
  revokedAtMs: row.revoked_at_ms,
  revocationReason: row.revocation_reason,
  creatorUserId: row.creator_user_id,
});

/** Stores management keys. */
export class ManagementKeyStore {
  private readonly database: Kysely<ManagementKeyTables>;

  constructor(database: Kysely<ManagementKeyTables>) {
    this.database = database;
  }

  /** Returns every key of all workspaces that was not revoked. */
  async loadAll(): Promise<ManagementKey[]> {
    const rows = await this.database
      .selectFrom("management_keys")
      .selectAll()
      .where("revoked_at_ms", "is", null)
      .execute();
    return rows.map(fromRow);
  }

  /** Returns whether a key with this hash was ever created, revoked or not. */
  async exists(hash: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("management_keys")
      .select("id")
      .where("hash", "=", hash)
      .executeTakeFirst();
    return row !== undefined;
  }

  async insert(key: ManagementKey): Promise<void> {
    await this.database
      .insertInto("management_keys")
      .values({
        id: key.id,
        hash: key.hash,
        workspace_id: key.workspaceId,
        name: key.name,
        description: key.description,
        scopes: JSON.stringify(key.scopes),
        label: key.label,
        created_at_ms: key.createdAtMs,
        expires_at_ms: key.expiresAtMs,
        revoked_at_ms: key.revokedAtMs,
        revocation_reason: key.revocationReason,
        creator_user_id: key.creatorUserId,
      })
      .execute();
  }

  /**
   * Returns the keys of one workspace, newest first. Revoked ones and those that expired before
   * `nowMs` are included only on request.
   */
  async list(
    workspaceId: string,
    { includeInvalid, nowMs }: { includeInvalid: boolean; nowMs: number },
  ): Promise<ManagementKey[]> {
    let query = this.database
      .selectFrom("management_keys")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (!includeInvalid) {
      query = query
        .where("revoked_at_ms", "is", null)
        .where((where) =>
          where.or([where("expires_at_ms", "is", null), where("expires_at_ms", ">", nowMs)]),
        );
    }
    const rows = await query.orderBy("created_at_ms", "desc").orderBy("id", "desc").execute();
    return rows.map(fromRow);
  }

  /** Replaces the scopes of an unrevoked key. Returns false when there is none with this id. */
  async setScopes(id: string, scopes: readonly Scope[]): Promise<boolean> {
    const row = await this.database
      .updateTable("management_keys")
      .set({ scopes: JSON.stringify(scopes) })
      .where("id", "=", id)
      .where("revoked_at_ms", "is", null)
      .returning("id")
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Revokes a key of a workspace. Returns false when it has no unrevoked key with this id. */
  async revoke({
    workspaceId,
    id,
    reason,
    nowMs,
  }: {
    workspaceId: string;
    id: string;
    reason: string | null;
    nowMs: number;
  }): Promise<boolean> {
    const row = await this.database
      .updateTable("management_keys")
      .set({ revoked_at_ms: nowMs, revocation_reason: reason })
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .where("revoked_at_ms", "is", null)
      .returning("id")
      .executeTakeFirst();
    return row !== undefined;
  }
}

/** The fields of a new management key. */
type NewManagementKey = Pick<
  ManagementKey,
  "workspaceId" | "name" | "description" | "scopes" | "expiresAtMs" | "creatorUserId"
>;

/** A management key that lost scopes, and which; one that has none left was revoked. */
export interface NarrowedKey {
  key: ManagementKey;
  lost: readonly Scope[];
}

/** Creates, narrows and revokes management keys. */
export class ManagementKeyEditor {
  private readonly store: ManagementKeyStore;
  private readonly directory: CredentialDirectory;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;
  private readonly time: DistinctTime;

  constructor(options: {
    store: ManagementKeyStore;
    directory: CredentialDirectory;
    hasher: SecretHasher;
    clock: Clock;
  }) {
    this.store = options.store;
    this.directory = options.directory;
    this.hasher = options.hasher;
    this.clock = options.clock;
    this.time = new DistinctTime(options.clock);
  }

  /** Stores a new key and puts it in force. The secret is returned only here. */
  async mint(wanted: NewManagementKey): Promise<{ secret: string; key: ManagementKey }> {
    const nowMs = this.time.nextMs();
    const secret = newSecret(brand.managementKeyPrefix);
    const key: ManagementKey = {
      ...wanted,
      id: newId("mgk", nowMs),
      hash: this.hasher.hash(secret),
      label: maskSecret(secret, brand.managementKeyPrefix),
      createdAtMs: nowMs,
      revokedAtMs: null,
      revocationReason: null,
    };
    await this.store.insert(key);
    this.directory.putManagementKey(key);
    return { secret, key };
  }

  /**
   * Takes from the keys that a person created in a workspace what they hold beyond a bound; a key
   * that is left without scopes is revoked. Returns the keys that lost something.
   */
  async narrow(
    { workspaceId, creatorUserId }: { workspaceId: string; creatorUserId: string },
    { bound, reason }: { bound: readonly Scope[]; reason: string },
  ): Promise<NarrowedKey[]> {
    const nowMs = this.clock.nowMs();
    const keys = await this.store.list(workspaceId, { includeInvalid: false, nowMs });
    const narrowed: NarrowedKey[] = [];
    for (const key of keys) {
      const lost = key.scopes.filter((scope) => !coversScope(bound, scope));
      if (key.creatorUserId !== creatorUserId || lost.length === 0) continue;
      const left = { ...key, scopes: scopesWithin(key.scopes, bound) };
      if (left.scopes.length === 0) await this.revoke({ workspaceId, id: key.id, reason });
      else if (await this.store.setScopes(key.id, left.scopes))
        this.directory.putManagementKey(left);
      narrowed.push({ key: left, lost });
    }
    return narrowed;
  }

  /**
   * Revokes a key; its next request is refused. Throws `not_found`, also for keys of other
   * workspaces.
   */
  async revoke({
    workspaceId,
    id,
    reason,
  }: {
    workspaceId: string;
    id: string;
    reason: string | null;
  }): Promise<void> {
    const revoked =
      mayBeId(id) &&
      (await this.store.revoke({ workspaceId, id, reason, nowMs: this.clock.nowMs() }));
    // Where the answer of an earlier revocation was lost, it is done in the database, and repeating
    // it removes the key here as well.
    const isLive = this.directory.managementKeyById(id)?.workspaceId === workspaceId;
    if (!revoked && !isLive) {
      throw new GatewayError(
        "not_found",
        "There is no management key with this id, or it was revoked. GET /management-keys lists them.",
      );
    }
    this.directory.remove(id);
  }
}
