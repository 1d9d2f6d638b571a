import type { CredentialUses } from "../identity/keys/credential-uses.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { CommitUnit } from "../platform/storage/commit-queue.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";
import type { ProviderKeyEditor } from "./provider-key-editor.ts";
import type { KeyUse, ProviderKeyUsage } from "./provider-key-usage.ts";
import type { ProviderKeyDirectory } from "./provider-key-directory.ts";
import type { ProviderKey } from "./provider-key.ts";

/** A provider's response to a key. */
export type KeyVerdict =
  | { kind: "served" }
  /** The key is invalid, or its account at the provider has no funds; with the provider's words. */
  | { kind: "refused"; reason: string | null }
  /** Too many requests; the provider may have named a time. */
  | { kind: "limited"; retryAfterSeconds: number | undefined };

/** The state of a record as its owner sees it. */
type ProviderKeyStatus =
  | "active"
  | "disabled"
  /** The provider refused it the last time. */
  | "refused"
  /** Its quota is used up. */
  | "exhausted"
  /** Donated, and not serving others at present. */
  | "paused";

/**
 * Milliseconds for which other keys go first, after a refusal, and after too many requests unless
 * the provider names a time (at most a minute).
 */
const refusedRestMs = 60_000;
const limitedRestMs = 10_000;
const restMsMax = 60_000;
/** The most characters of a provider's words about a key that are kept. */
const reasonLengthMax = 300;

/**
 * A provider's complaints about a key: whether it refused the key, and until when the key rests.
 */
interface Trouble {
  sealed: string;
  refused: boolean;
  /** The provider's words about a refusal; null where it gave none. */
  reason: string | null;
  restsUntilMs: number;
}

/**
 * Provider keys as requests use them: which ones exist, what is left of them, and how providers
 * responded.
 */
export class ProviderKeys {
  private readonly troubles = new Map<string, Trouble>();

  constructor(
    private readonly parts: {
      directory: ProviderKeyDirectory;
      usage: ProviderKeyUsage;
      vault: KeyVault;
      editor: ProviderKeyEditor;
      uses: CredentialUses;
      clock: Clock;
      /**
       * Called when the pause of a donated key could not be stored; it is tried again at the next
       * refusal.
       */
      onError(error: unknown): void;
    },
  ) {}

  /** Returns whether there is any key that requests of a workspace might use. */
  concern(workspaceId: string): boolean {
    const { directory } = this.parts;
    return directory.hasDonated || directory.keysOf(workspaceId) !== undefined;
  }

  /** Returns whether a workspace has a key for a provider, usable or not. */
  hasOwn(workspaceId: string, providerId: string): boolean {
    return this.parts.directory.keysOf(workspaceId)?.has(providerId) ?? false;
  }

  /**
   * Returns a workspace's own keys for a provider that may be used now, in the order in which they
   * were created.
   */
  ownKeys(workspaceId: string, providerId: string): readonly ProviderKey[] {
    const keys = this.parts.directory.keysOf(workspaceId)?.get(providerId) ?? [];
    return keys.filter((key) => key.enabled && this.isLeft({ key, source: "own_byok" }));
  }

  /** Returns an own key of a workspace, usable or not; undefined where it is gone. */
  own(
    workspaceId: string,
    { providerId, id }: { providerId: string; id: string },
  ): ProviderKey | undefined {
    const keys = this.parts.directory.keysOf(workspaceId)?.get(providerId) ?? [];
    return keys.find((key) => key.id === id);
  }

  /**
   * Returns other workspaces' donated keys for a provider that may be used now, least used first.
   */
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

  /** Returns whether the provider refused or limited a key a moment ago. */
  isResting(key: ProviderKey): boolean {
    const trouble = this.troubleOf(key);
    return trouble !== undefined && trouble.restsUntilMs > this.parts.clock.monotonicMs();
  }

  /** Returns the key itself, in the clear. Throws where its row was tampered with. */
  secretOf(key: ProviderKey): string {
    return this.parts.vault.open(key, key.sealed);
  }

  /**
   * Takes a key for a request (see `ProviderKeyUsage`). Returns false when nothing is left of it or
   * it was deleted.
   */
  take(requestId: string, use: KeyUse, ceilingNano: bigint): boolean {
    const { directory, usage, uses, clock } = this.parts;
    const current = directory.find(use.key.id);
    if (current?.sealed !== use.key.sealed || !current.enabled) return false;
    if (!usage.take(requestId, { ...use, key: current }, ceilingNano)) return false;
    uses.note(current.id, clock.nowMs());
    return true;
  }

  /** Releases what a request has held and not used. */
  release(requestId: string): void {
    this.parts.usage.release(requestId);
  }

  /**
   * Counts what a request used, at list price. The returned counters are to be committed with its
   * record.
   */
  settle(
    requestId: string,
    use: KeyUse,
    listedNano: bigint,
  ): { adds: CommitUnit["adds"]; undo(): void } {
    return this.parts.usage.settle(requestId, use, listedNano);
  }

  /**
   * Records how a provider responded to a key. A donated key that is refused serves no other
   * workspace until it works again.
   */
  note({ key }: KeyUse, verdict: KeyVerdict): void {
    const { editor, onError } = this.parts;
    if (verdict.kind === "served") this.troubles.delete(key.id);
    else
      this.troubles.set(key.id, {
        sealed: key.sealed,
        refused: verdict.kind === "refused",
        reason: verdict.kind === "refused" ? this.shownReason(key, verdict.reason) : null,
        restsUntilMs: this.restsUntil(verdict),
      });
    if (verdict.kind !== "limited")
      editor.noteCredential(key, verdict.kind === "served").catch(onError);
  }

  /** Records from a probe whether a key is accepted; resolves when that is in force. */
  async noteProbe(
    key: ProviderKey,
    { outcome, reason }: { outcome: "accepted" | "refused" | "unknown"; reason: string | null },
  ): Promise<void> {
    const accepted = outcome === "accepted";
    if (accepted) this.troubles.delete(key.id);
    // A donated key is paused instead.
    else if (key.donation === null) {
      this.troubles.set(key.id, {
        sealed: key.sealed,
        refused: true,
        reason: this.shownReason(key, reason),
        restsUntilMs: this.restsUntil({ kind: "refused", reason: null }),
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

  /** Returns why the provider refused a key the last time, in its words; null where unknown. */
  refusalReasonOf(key: ProviderKey): string | null {
    return this.troubleOf(key)?.reason ?? null;
  }

  /** Shortens a provider's words, and removes the key itself from them. */
  private shownReason(key: ProviderKey, reason: string | null): string | null {
    return reason === null
      ? null
      : reason.replaceAll(this.secretOf(key), key.preview).slice(0, reasonLengthMax);
  }

  private restsUntil(verdict: KeyVerdict): number {
    const seconds = verdict.kind === "limited" ? verdict.retryAfterSeconds : undefined;
    const limitedMs = seconds === undefined ? limitedRestMs : Math.min(restMsMax, seconds * 1000);
    return (
      this.parts.clock.monotonicMs() + (verdict.kind === "limited" ? limitedMs : refusedRestMs)
    );
  }

  /**
   * Returns what is known of a key's last use. What was found out before its rotation does not
   * apply to the new key.
   */
  private troubleOf({ id, sealed }: ProviderKey): Trouble | undefined {
    const trouble = this.troubles.get(id);
    return trouble?.sealed === sealed ? trouble : undefined;
  }

  private isLeft(use: KeyUse): boolean {
    const left = this.parts.usage.leftFor(use);
    return left === undefined || left > 0n;
  }
}
