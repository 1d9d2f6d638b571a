import type { Clock } from "../platform/kernel/clock.ts";
import { DistinctTime } from "../platform/kernel/time/distinct-time.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { newId } from "../platform/kernel/ids.ts";
import { KeyedMutex } from "../platform/kernel/keyed-mutex.ts";
import { changesOf } from "../platform/storage/changes-of.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";
import type { ProviderKeyDirectory } from "./provider-key-directory.ts";
import type { ProviderKeyStore } from "./provider-key-store.ts";
import { type PauseReason, type Donation, type ProviderKey, previewOf } from "./provider-key.ts";

/** A key as its own workspace names it. */
export interface ProviderKeyReference {
  workspaceId: string;
  id: string;
}

/** The fields of a new record. */
type NewProviderKey = Pick<
  ProviderKey,
  "workspaceId" | "providerId" | "label" | "enabled" | "source" | "quota"
> & {
  secret: string;
};

/** The fields of a record that its owner may change; absent fields stay as they are. */
type ProviderKeyChanges = Partial<Pick<NewProviderKey, "label" | "enabled" | "quota" | "secret">>;

/** The fields of a donation that its owner may change. */
type DonationChanges = Partial<{
  dailyLimitNano: bigint | null;
  paused: PauseReason | null;
}>;

/**
 * The most keys of a workspace: more than it needs, and few enough to search with every request.
 */
const keysPerWorkspaceMax = 200;

const noKey = (): GatewayError =>
  new GatewayError(
    "not_found",
    "There is no provider key with this id. GET /auth/byok lists them.",
  );
const conflict = (message: string, param?: string): GatewayError =>
  new GatewayError("conflict", message, param === undefined ? {} : { param });

/**
 * Creates, changes, deletes, donates and withdraws provider keys, one write of a workspace at a
 * time. A change is in force when it is answered.
 */
export class ProviderKeyEditor {
  private readonly store: ProviderKeyStore;
  private readonly directory: ProviderKeyDirectory;
  private readonly vault: KeyVault;
  private readonly clock: Clock;
  private readonly time: DistinctTime;
  private readonly mutex = new KeyedMutex();

  constructor(options: {
    store: ProviderKeyStore;
    directory: ProviderKeyDirectory;
    vault: KeyVault;
    clock: Clock;
  }) {
    this.store = options.store;
    this.directory = options.directory;
    this.vault = options.vault;
    this.clock = options.clock;
    this.time = new DistinctTime(options.clock);
  }

  /** Returns the key with this id. Throws `not_found`, also for keys of other workspaces. */
  find({ workspaceId, id }: ProviderKeyReference): ProviderKey {
    const key = this.directory.find(id);
    if (key === undefined || key.workspaceId !== workspaceId) throw noKey();
    return key;
  }

  /**
   * Seals and stores a new key. Throws `conflict` where the workspace already has it, or has too
   * many.
   */
  create({ secret, ...wanted }: NewProviderKey): Promise<ProviderKey> {
    const { workspaceId, providerId } = wanted;
    return this.mutex.run(workspaceId, async () => {
      this.assertNew(secret, { workspaceId, providerId, id: "" });
      const count = [...(this.directory.keysOf(workspaceId)?.values() ?? [])].flat().length;
      if (count >= keysPerWorkspaceMax)
        throw conflict(
          `A workspace has at most ${keysPerWorkspaceMax} provider keys. Delete one first.`,
        );
      const nowMs = this.time.nextMs();
      const id = newId("byok", nowMs);
      const sealed = await this.vault.seal({ workspaceId, providerId, id }, secret);
      const key: ProviderKey = {
        ...wanted,
        id,
        sealed,
        preview: previewOf(secret),
        donation: null,
        createdAtMs: nowMs,
        updatedAtMs: null,
      };
      await this.inForce(key.id, () => this.store.insert(key));
      this.directory.put(key);
      return key;
    });
  }

  /** Changes some fields, or replaces the key itself. Throws `not_found` and `conflict`. */
  async change(
    reference: ProviderKeyReference,
    { secret, ...fields }: ProviderKeyChanges,
  ): Promise<ProviderKey> {
    if (secret === undefined && Object.keys(fields).length === 0) return this.find(reference);
    return this.write(reference, async (key) => {
      if (secret === undefined) return { ...key, ...fields };
      this.assertNew(secret, key);
      return {
        ...key,
        ...fields,
        sealed: await this.vault.seal(key, secret),
        preview: previewOf(secret),
      };
    });
  }

  /** Deletes a key permanently, with its donation. Throws `not_found`. */
  remove(reference: ProviderKeyReference): Promise<void> {
    return this.mutex.run(reference.workspaceId, async () => {
      const { id } = this.find(reference);
      await this.inForce(id, () => this.store.remove(id));
      this.directory.remove(id);
    });
  }

  /** Shares a key with all workspaces. Throws `not_found`, and `conflict` where it is shared. */
  donate(reference: ProviderKeyReference, dailyLimitNano: bigint | null): Promise<ProviderKey> {
    return this.write(reference, async (key) => {
      if (key.donation !== null) {
        throw conflict(
          "This key is donated already. PATCH /byok/donated/{id} changes its daily_limit.",
          "key_id",
        );
      }
      return {
        ...key,
        donation: { donatedAtMs: this.clock.nowMs(), dailyLimitNano, paused: null },
      };
    });
  }

  /** Changes a donation's limit, or pauses or resumes it. Throws `not_found` and `conflict`. */
  async changeDonation(
    reference: ProviderKeyReference,
    changes: DonationChanges,
  ): Promise<ProviderKey> {
    const key = this.find(reference);
    if (Object.keys(changes).length === 0 && donationOf(key)) return key;
    return this.write(reference, async (key) => ({
      ...key,
      donation: { ...donationOf(key), ...changes },
    }));
  }

  /**
   * Ends a donation, so that the key serves its owner alone. Throws `not_found`, and `conflict`
   * where it is not shared.
   */
  withdraw(reference: ProviderKeyReference): Promise<ProviderKey> {
    return this.write(reference, async (key) => {
      donationOf(key);
      return { ...key, donation: null };
    });
  }

  /**
   * Pauses a donation whose key the provider refuses, or ends such a pause. Does nothing where
   * there is no donation.
   */
  async noteCredential(key: ProviderKey, works: boolean): Promise<void> {
    const from = works ? "credential" : null;
    const to = works ? null : "credential";
    if (this.directory.find(key.id)?.donation?.paused !== from) return;
    await this.write(key, async (current) => {
      // What was found out about the key before its rotation does not apply to the new one.
      const applies = current.donation?.paused === from && current.sealed === key.sealed;
      return applies && current.donation !== null
        ? { ...current, donation: { ...current.donation, paused: to } }
        : current;
    });
  }

  private write(
    reference: ProviderKeyReference,
    change: (key: ProviderKey) => Promise<ProviderKey>,
  ): Promise<ProviderKey> {
    return this.mutex.run(reference.workspaceId, async () => {
      const before = this.find(reference);
      const after = { ...(await change(before)), updatedAtMs: this.clock.nowMs() };
      await this.inForce(before.id, async () => {
        if (!(await this.store.update(before, after))) throw noKey();
      });
      // Another gateway may have changed other fields during the write.
      const changed = { ...after, ...this.directory.find(before.id), ...changesOf(before, after) };
      this.directory.put(changed);
      return changed;
    });
  }

  /**
   * Writes, and brings memory in line with the database: where the connection broke, the write may
   * have happened, so the row is read back.
   */
  private async inForce(id: string, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      const key = await this.store.find(id).catch(() => "unknown" as const);
      if (key === undefined) this.directory.remove(id);
      else if (key !== "unknown") this.directory.put(key);
      throw error;
    }
  }

  /**
   * Throws where the workspace has this key already: it would be tried twice, and its quota would
   * count half.
   */
  private assertNew(
    secret: string,
    { workspaceId, providerId, id }: Pick<ProviderKey, "workspaceId" | "providerId" | "id">,
  ): void {
    const twin = this.directory
      .keysOf(workspaceId)
      ?.get(providerId)
      ?.find(
        (key) =>
          key.id !== id &&
          key.preview === previewOf(secret) &&
          this.vault.open(key, key.sealed) === secret,
      );
    if (twin !== undefined)
      throw conflict(`This workspace has this key already, as ${twin.id}.`, "api_key");
  }
}

function donationOf({ donation }: ProviderKey): Donation {
  if (donation === null) throw conflict("This key is not donated.");
  return donation;
}
