import type { ProviderKey } from "./provider-key.ts";

/** Keys by provider; those of one provider in the order in which they were created. */
type KeysByProvider = Map<string, ProviderKey[]>;

/**
 * All provider keys in memory, sealed: whether a request may use one costs a lookup and never a
 * query. A change replaces the whole record.
 */
export class ProviderKeyDirectory {
  /** Called with the workspace whose keys changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly byId = new Map<string, ProviderKey>();
  private readonly byWorkspace = new Map<string, KeysByProvider>();
  private readonly donated: KeysByProvider = new Map();

  /** Whether any donated key may serve other workspaces. */
  get hasDonated(): boolean {
    return this.donated.size > 0;
  }

  /** Returns the key with this id, of any workspace. */
  find(id: string): ProviderKey | undefined {
    return this.byId.get(id);
  }

  /** Returns a workspace's keys by provider; undefined where it has none. */
  keysOf(workspaceId: string): ReadonlyMap<string, readonly ProviderKey[]> | undefined {
    return this.byWorkspace.get(workspaceId);
  }

  /** Returns the keys that were donated for a provider, including paused ones. */
  donatedFor(providerId: string): readonly ProviderKey[] {
    return this.donated.get(providerId) ?? [];
  }

  /** Returns every donated key. */
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

  /** Replaces a workspace's keys, given oldest first. */
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

/**
 * Replaces a key in its list. Lists are replaced and never changed, because a request may be
 * reading them.
 */
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
