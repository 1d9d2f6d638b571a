import type { ProviderKey } from "./provider-key.ts";

/** Keys by provider, those of one provider in the order in which they were made. */
type KeysByProvider = Map<string, ProviderKey[]>;

/**
 * Every provider key in memory, sealed: whether a request may use one costs a look-up and never the database.
 * A change replaces the record as a whole.
 */
export class ProviderKeyDirectory {
  /** Told of the workspace whose keys changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly byId = new Map<string, ProviderKey>();
  private readonly byWorkspace = new Map<string, KeysByProvider>();
  private readonly donated: KeysByProvider = new Map();

  /** Whether anybody's donated key may serve anybody. */
  get hasDonated(): boolean {
    return this.donated.size > 0;
  }

  /** The key with this id, whoever owns it. */
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
