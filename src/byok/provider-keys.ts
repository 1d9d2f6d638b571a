import type { Kysely } from "kysely";
import type { CredentialUses } from "../identity/keys/credential-uses.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { CommitUnit } from "../platform/storage/commit-queue.ts";
import { DataKeyStore, type DataKeyTables, KeyVault } from "../platform/vault/key-vault.ts";
import { createMasterKeys } from "../platform/vault/envelope.ts";
import {
  ProviderKeyEditor,
  ProviderKeyStore,
  type ProviderKeyTables,
} from "./provider-key-editor.ts";
import {
  loadProviderKeyUsage,
  ProviderKeyUsage,
  type KeyUse,
  type ProviderKeyUsageTables,
} from "./provider-key-usage.ts";
import { ProviderKeyDirectory, type ProviderKey } from "./provider-key.ts";

/** How a provider received a key. */
export type KeyVerdict =
  | { kind: "served" }
  /** The key is not accepted, or nothing is left of what it may spend at the provider. */
  | { kind: "refused" }
  /** Too many requests; the provider may have said for how long. */
  | { kind: "limited"; retryAfterSeconds: number | undefined };

/** State of a record as its owner sees it. */
type ProviderKeyStatus =
  | "active"
  | "disabled"
  /** The provider refused it the last time. */
  | "refused"
  /** Nothing is left of its quota. */
  | "exhausted"
  /** Donated, and not serving others for now. */
  | "paused";

/**
 * How long others go first after a refusal, and after too many requests unless the provider names a
 * time (at most a minute).
 */
const refusedRestMs = 60_000;
const limitedRestMs = 10_000;
const restMsMax = 60_000;

/** What is known of a key since it was used last. */
interface Trouble {
  sealed: string;
  refused: boolean;
  restsUntilMs: number;
}

/**
 * Provider keys as requests use them: which ones there are, what is left of them, and what became
 * of it.
 */
export class ProviderKeys {
  private readonly troubles = new Map<string, Trouble>();
  private readonly parts: {
    directory: ProviderKeyDirectory;
    usage: ProviderKeyUsage;
    vault: KeyVault;
    editor: ProviderKeyEditor;
    uses: CredentialUses;
    clock: Clock;
    /**
     * Told when the pause of a donated key could not be stored; it is tried again at the next
     * refusal.
     */
    onError(error: unknown): void;
  };

  constructor(parts: ProviderKeys["parts"]) {
    this.parts = parts;
  }

  /** Whether there is any key that requests of a workspace might use. */
  concern(workspaceId: string): boolean {
    const { directory } = this.parts;
    return directory.hasDonated || directory.keysOf(workspaceId) !== undefined;
  }

  /** Whether a workspace has a key for a provider, usable or not. */
  hasOwn(workspaceId: string, providerId: string): boolean {
    return this.parts.directory.keysOf(workspaceId)?.has(providerId) ?? false;
  }

  /**
   * A workspace's own keys for a provider that may be used now, in the order in which they were
   * made.
   */
  ownKeys(workspaceId: string, providerId: string): readonly ProviderKey[] {
    const keys = this.parts.directory.keysOf(workspaceId)?.get(providerId) ?? [];
    return keys.filter((key) => key.enabled && this.isLeft({ key, source: "own_byok" }));
  }

  /** Others' keys for a provider that were donated and may be used now, the least used first. */
  pooledKeys(providerId: string, { except }: { except: string }): readonly ProviderKey[] {
    const { directory, usage } = this.parts;
    return directory
      .donatedFor(providerId)
      .filter(
        (key) =>
          key.workspaceId !== except &&
          key.enabled &&
          key.donation?.paused === null &&
          this.isLeft({ key, source: "pool" }),
      )
      .map((key) => ({ key, usedNano: usage.poolUsedOf(key) }))
      .sort((left, right) =>
        left.usedNano < right.usedNano ? -1 : left.usedNano > right.usedNano ? 1 : 0,
      )
      .map(({ key }) => key);
  }

  /** Whether the provider refused or limited a key a moment ago. */
  isResting(key: ProviderKey): boolean {
    const trouble = this.troubleOf(key);
    return trouble !== undefined && trouble.restsUntilMs > this.parts.clock.monotonicMs();
  }

  /** The key itself, in clear. Throws where its row was tampered with. */
  secretOf(key: ProviderKey): string {
    return this.parts.vault.open(key, key.sealed);
  }

  /**
   * Takes a key for a request (see `ProviderKeyUsage`); false when nothing is left of it or it is
   * gone.
   */
  take(requestId: string, use: KeyUse, ceilingNano: bigint): boolean {
    const { directory, usage, uses, clock } = this.parts;
    const current = directory.find(use.key.id);
    if (current?.sealed !== use.key.sealed || !current.enabled) return false;
    if (!usage.take(requestId, { ...use, key: current }, ceilingNano)) return false;
    uses.note(current.id, clock.nowMs());
    return true;
  }

  /** Gives back what a request has taken and not used. */
  release(requestId: string): void {
    this.parts.usage.release(requestId);
  }

  /**
   * Counts what a request used, at list price; the counters are to be committed with its record.
   */
  settle(
    requestId: string,
    use: KeyUse,
    listedNano: bigint,
  ): { adds: CommitUnit["adds"]; undo(): void } {
    return this.parts.usage.settle(requestId, use, listedNano);
  }

  /**
   * Learns how a provider received a key; a donated one that is refused serves others no more until
   * it works again.
   */
  note({ key }: KeyUse, verdict: KeyVerdict): void {
    const { editor, onError } = this.parts;
    if (verdict.kind === "served") this.troubles.delete(key.id);
    else
      this.troubles.set(key.id, {
        sealed: key.sealed,
        refused: verdict.kind === "refused",
        restsUntilMs: this.restsUntil(verdict),
      });
    if (verdict.kind !== "limited")
      editor.noteCredential(key, verdict.kind === "served").catch(onError);
  }

  /** Learns from a probe whether a key is accepted; settles when that is in force. */
  async noteProbe(key: ProviderKey, accepted: boolean): Promise<void> {
    if (accepted) this.troubles.delete(key.id);
    // A donated key is paused instead.
    else if (key.donation === null) {
      this.troubles.set(key.id, {
        sealed: key.sealed,
        refused: true,
        restsUntilMs: this.restsUntil({ kind: "refused" }),
      });
    }
    await this.parts.editor.noteCredential(key, accepted);
  }

  statusOf(key: ProviderKey): ProviderKeyStatus {
    if (!key.enabled) return "disabled";
    if (this.troubleOf(key)?.refused) return "refused";
    if (!this.isLeft({ key, source: "own_byok" })) return "exhausted";
    return key.donation !== null && key.donation.paused !== null ? "paused" : "active";
  }

  private restsUntil(verdict: KeyVerdict): number {
    const seconds = verdict.kind === "limited" ? verdict.retryAfterSeconds : undefined;
    const limitedMs = seconds === undefined ? limitedRestMs : Math.min(restMsMax, seconds * 1000);
    return (
      this.parts.clock.monotonicMs() + (verdict.kind === "limited" ? limitedMs : refusedRestMs)
    );
  }

  /** What was found out about a key before it was rotated says nothing of the new one. */
  private troubleOf({ id, sealed }: ProviderKey): Trouble | undefined {
    const trouble = this.troubles.get(id);
    return trouble?.sealed === sealed ? trouble : undefined;
  }

  private isLeft(use: KeyUse): boolean {
    const left = this.parts.usage.leftFor(use);
    return left === undefined || left > 0n;
  }
}

/** Everything that provider keys keep in the database. */
export type ByokTables = DataKeyTables & ProviderKeyTables & ProviderKeyUsageTables;

/** 32-byte secrets that the master keys are derived from. */
export interface MasterSecrets {
  current: Uint8Array;
  /** Those that may have wrapped data keys before. */
  previous: readonly Uint8Array[];
}

/** The parts that provider keys are managed and used through. */
export interface Byok {
  providerKeys: ProviderKeys;
  providerKeyDirectory: ProviderKeyDirectory;
  providerKeyEditor: ProviderKeyEditor;
  providerKeyUsage: ProviderKeyUsage;
  providerKeyVault: KeyVault;
}

/**
 * Builds what provider keys need, fills its memory from the database, and wraps again what an
 * earlier master key has wrapped.
 */
export async function openByok({
  database,
  clock,
  uses,
  masterSecrets,
  onError,
}: {
  database: Kysely<ByokTables>;
  clock: Clock;
  uses: CredentialUses;
  masterSecrets: MasterSecrets;
  onError(error: unknown): void;
}): Promise<Byok> {
  const vault = await KeyVault.open({
    store: new DataKeyStore(database.withTables()),
    masterKeys: createMasterKeys(masterSecrets),
    clock,
  });
  const store = new ProviderKeyStore(database.withTables());
  const directory = new ProviderKeyDirectory();
  for (const key of await store.loadAll()) directory.put(key);
  const usage = new ProviderKeyUsage(clock);
  await loadProviderKeyUsage(database.withTables(), usage);
  const editor = new ProviderKeyEditor({ store, directory, vault, clock });
  return {
    providerKeyDirectory: directory,
    providerKeyVault: vault,
    providerKeyEditor: editor,
    providerKeyUsage: usage,
    providerKeys: new ProviderKeys({ directory, usage, vault, editor, uses, clock, onError }),
  };
}
