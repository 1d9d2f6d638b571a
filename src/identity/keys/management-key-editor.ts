import { brand } from "../../platform/kernel/brand.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { maskSecret, newSecret, type SecretHasher } from "./secret-hasher.ts";
import { coversScope, scopesWithin, type Scope } from "./scopes.ts";
import type { ManagementKey, NarrowedKey } from "./management-keys.ts";
import type { ManagementKeyStore } from "./management-key-store.ts";

/** The fields of a new management key. */
type NewManagementKey = Pick<
  ManagementKey,
  "workspaceId" | "name" | "description" | "scopes" | "expiresAtMs" | "creatorUserId"
>;

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
