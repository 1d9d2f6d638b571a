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
