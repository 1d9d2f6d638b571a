import { keysOf, type LlmKeyCaller } from "../keys/caller.ts";
import { type Privacy, noPrivacy } from "./privacy.ts";

/** The settings of all workspaces and keys in memory. Planning a request costs two lookups. */
export class PrivacyDirectory {
  /** Called with the workspace or key whose settings changed. */
  onChange: (ownerId: string) => void = () => undefined;
  private readonly byOwner = new Map<string, Privacy>();

  /** Replaces the settings of a workspace or a key. */
  put(ownerId: string, privacy: Privacy): void {
    this.onChange(ownerId);
    const { zdr, blockedProviders, contentsSinceMs } = privacy;
    if (!zdr && blockedProviders.length === 0 && contentsSinceMs === undefined)
      this.byOwner.delete(ownerId);
    else this.byOwner.set(ownerId, privacy);
  }

  /** Returns the own settings of a workspace or a key. */
  of(ownerId: string): Privacy {
    return this.byOwner.get(ownerId) ?? noPrivacy;
  }

  /**
   * Returns since when a workspace keeps its prompts and answers; undefined where it does not, or
   * where it or the key requires zero data retention.
   */
  contentsSinceMs(
    workspaceId: string,
    caller: Pick<LlmKeyCaller, "key" | "parent" | "grandparent">,
  ): number | undefined {
    const { contentsSinceMs } = this.of(workspaceId);
    return contentsSinceMs === undefined || this.workspacePrivacy(workspaceId, caller).zdr
      ? undefined
      : contentsSinceMs;
  }

  /**
   * Returns all requirements of a request: those of its workspace, its key, and the keys above
   * that one.
   */
  workspacePrivacy(
    workspaceId: string,
    caller: Pick<LlmKeyCaller, "key" | "parent" | "grandparent">,
  ): Privacy {
    if (this.byOwner.size === 0) return noPrivacy;
    return keysOf(caller).reduce((sum, { id }) => both(sum, this.of(id)), this.of(workspaceId));
  }
}

/** Returns the stricter of both in each respect. */
function both(one: Privacy, other: Privacy): Privacy {
  if (other === noPrivacy) return one;
  if (one === noPrivacy) return other;
  return {
    zdr: one.zdr || other.zdr,
    blockedProviders: [...new Set([...one.blockedProviders, ...other.blockedProviders])],
  };
}
