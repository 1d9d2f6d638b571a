import { brand } from "../../platform/lib/brand.ts";
import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { mayBeId, newId } from "../../platform/lib/ids.ts";
import { DistinctTime } from "../distinct-time.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { maskSecret } from "./llm-key.ts";
import type { ManagementKey } from "./management-key.ts";
import type { ManagementKeyStore } from "./management-key-store.ts";
import { newSecret } from "./new-secret.ts";
import type { SecretHasher } from "./secret-hasher.ts";

/** What a new management key is made of. */
export type NewManagementKey = Pick<
  ManagementKey,
  "workspaceId" | "name" | "description" | "scopes" | "expiresAtMs" | "creatorUserId"
>;

/** Makes and revokes management keys. */
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

  /** Stores a new key and puts it in force. The secret exists in this answer and nowhere else. */
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

  /** Revokes a key; its next request is refused. Throws `not_found`, also for keys of other workspaces. */
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
    // A revocation whose answer was lost stands in the database, and its repetition ends it here as well.
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
