import type { CredentialUses } from "../identity/keys/credential-directory.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { CommitUnit } from "../platform/storage/commit-queue.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";
import type { ProviderKeyEditor } from "./provider-key-editor.ts";
import type { KeyUse, ProviderKeyUsage } from "./provider-key-usage.ts";

/** Who made a record (contract: set once at creation). */
export const keySources = ["cli", "dashboard", "api"] as const;

/** One of them. */
export type KeySource = (typeof keySources)[number];

/** Rolling windows of a quota; null means that it never resets. */
export type QuotaReset = "daily" | "weekly" | "monthly" | null;

/** What a key may be used for, in list prices of what is asked through it. */
export interface Quota {
  limitNano: bigint;
  reset: QuotaReset;
}

/** Why a donated key does not serve others for now. */
export type PauseReason =
  /** The provider refused it: it resumes after its next successful probe. */
  | "credential"
  /** Its owner wants it so. */
  | "owner";

/** The donation of a key to all workspaces. */
export interface Donation {
  donatedAtMs: number;
  /** Nano-USD of list price that others may use within 24 hours; null means no bound. */
  dailyLimitNano: bigint | null;
  paused: PauseReason | null;
}

/** A caller's own key at a provider, as the gateway knows it: the key itself stays sealed. */
export interface ProviderKey {
  /** `byok_` id; survives rotation. */
  id: string;
  workspaceId: string;
  providerId: string;
  label: string;
  /** Masked form of the key. */
  preview: string;
  /** The key as `KeyVault` has sealed it. */
  sealed: string;
  enabled: boolean;
  source: KeySource;
  quota: Quota | null;
  donation: Donation | null;
  createdAtMs: number;
  updatedAtMs: number | null;
}

const windowHours = { daily: 24, weekly: 7 * 24, monthly: 30 * 24 } as const;

/** Hours of a quota's window; undefined where it has none. */
export const quotaWindowHours = (reset: QuotaReset): number | undefined =>
  reset === null ? undefined : windowHours[reset];

/** First four characters, four asterisks, last three (contract: `key_preview`). */
export const previewOf = (secret: string): string => `${secret.slice(0, 4)}****${secret.slice(-3)}`;

/** Keys by provider, those of one provider in the order in which they were made. */
type KeysByProvider = Map<string, ProviderKey[]>;

/**
 * Every provider key in memory, sealed: whether a request may use one costs a look-up and never the
 * database. A change replaces the record as a whole.
 */
export class ProviderKeyDirectory {
  /** Called with the workspace whose keys changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly byId = new Map<string, ProviderKey>();
  private readonly byWorkspace = new Map<string, KeysByProvider>();
  private readonly donated: KeysByProvider = new Map();

  /** Whether there is a donated key that may serve other workspaces. */
  get hasDonated(): boolean {
    return this.donated.size > 0;
  }

  /** The key with this id, of any workspace. */
  find(id: string): ProviderKey | undefined {
    return this.byId.get(id);
  }

  /** A workspace's keys by provider; undefined where it has none. */
  keysOf(workspaceId: string): ReadonlyMap<string, readonly ProviderKey[]> | undefined {
    return this.byWorkspace.get(workspaceId);
  }

  /** Keys that were donated for a provider, paused ones too. */
  donatedFor(providerId: string): readonly ProviderKey[] {
    return this.donated.get(providerId) ?? [];
  }

  /** Every donated key. */
  allDonated(): ProviderKey[] {
    return [...this.donated.values()].flat();
  }

  put(key: ProviderKey): void {
    const before = this.byId.get(key.id);
    this.byId.set(key.id, key);
    this.onChange(key.workspaceId);
    let keys = this.byWorkspace.get(key.workspaceId);
    if (keys === undefined) this.byWorkspace.set(key.workspaceId, (keys = new Map()));
    replaceIn(keys, key);
    if (key.donation !== null) replaceIn(this.donated, key);
    else if (before !== undefined) removeFrom(this.donated, before);
  }

  /** Puts a workspace's keys, the oldest first, in place of those that it had. */
  replaceWorkspace(workspaceId: string, keys: readonly ProviderKey[]): void {
    const kept = new Set(keys.map(({ id }) => id));
    for (const { id } of [...(this.keysOf(workspaceId)?.values() ?? [])].flat())
      if (!kept.has(id)) this.remove(id);
    for (const key of keys) this.put(key);
  }

  remove(id: string): void {
    const key = this.byId.get(id);
    if (key === undefined) return;
    this.byId.delete(id);
    this.onChange(key.workspaceId);
    const keys = this.byWorkspace.get(key.workspaceId);
    if (keys !== undefined) removeFrom(keys, key);
    if (keys?.size === 0) this.byWorkspace.delete(key.workspaceId);
    removeFrom(this.donated, key);
  }
}

/** Lists are replaced, never changed: a request may be reading them. */
function replaceIn(keys: KeysByProvider, key: ProviderKey): void {
  const list = keys.get(key.providerId) ?? [];
  const known = list.some(({ id }) => id === key.id);
  keys.set(
    key.providerId,
    known ? list.map((each) => (each.id === key.id ? key : each)) : [...list, key],
  );
}

function removeFrom(keys: KeysByProvider, { id, providerId }: ProviderKey): void {
  const left = keys.get(providerId)?.filter((each) => each.id !== id) ?? [];
  if (left.length === 0) keys.delete(providerId);
  else keys.set(providerId, left);
}

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
