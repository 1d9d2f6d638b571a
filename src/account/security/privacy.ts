import type { LlmKeyCaller } from "../keys/caller.ts";

/** What a workspace, or one of its keys, demands of every provider that sees its requests. */
export interface Privacy {
  /** Only providers that keep nothing (zero data retention). */
  zdr: boolean;
  /** Ids of providers that never serve. */
  blockedProviders: readonly string[];
}

/** Whose demands they are: a workspace's own, or those of one of its keys. */
export interface PrivacyOwner {
  workspaceId: string;
  ownerId: string;
}

/** The demands of whoever demands nothing. */
export const noPrivacy: Privacy = Object.freeze({
  zdr: false,
  blockedProviders: Object.freeze([]),
});

/** The demands of all workspaces and keys in memory; planning a request costs two look-ups. */
export class PrivacyDirectory {
  /** Told of the workspace or key whose demands changed. */
  onChange: (ownerId: string) => void = () => undefined;
  private readonly byOwner = new Map<string, Privacy>();

  /** Replaces the demands of a workspace or a key. */
  put(ownerId: string, privacy: Privacy): void {
    this.onChange(ownerId);
    if (!privacy.zdr && privacy.blockedProviders.length === 0) this.byOwner.delete(ownerId);
    else this.byOwner.set(ownerId, privacy);
  }

  /** What a workspace or a key demands itself. */
  of(ownerId: string): Privacy {
    return this.byOwner.get(ownerId) ?? noPrivacy;
  }

  /** Everything that holds for a request: what its workspace demands, its key, and the key that made that one. */
  workspacePrivacy(
    workspaceId: string,
    { key, parent }: Pick<LlmKeyCaller, "key" | "parent">,
  ): Privacy {
    if (this.byOwner.size === 0) return noPrivacy;
    return [key.id, ...(parent === undefined ? [] : [parent.id])].reduce(
      (sum, id) => both(sum, this.of(id)),
      this.of(workspaceId),
    );
  }
}

/** The stricter of both in each respect. */
function both(one: Privacy, other: Privacy): Privacy {
  if (other === noPrivacy) return one;
  if (one === noPrivacy) return other;
  return {
    zdr: one.zdr || other.zdr,
    blockedProviders: [...new Set([...one.blockedProviders, ...other.blockedProviders])],
  };
}
