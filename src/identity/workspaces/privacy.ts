/** The privacy that a workspace, or one of its keys, requires of every provider of its requests. */
export interface Privacy {
  /** Only providers that retain nothing (zero data retention). */
  zdr: boolean;
  /** Ids of providers that never serve. */
  blockedProviders: readonly string[];
  /**
   * The wall time since which a workspace keeps its prompts and answers; absent where it does not.
   * Keys have no such setting.
   */
  contentsSinceMs?: number | undefined;
}

/** The settings that require nothing. */
export const noPrivacy: Privacy = Object.freeze({
  zdr: false,
  blockedProviders: Object.freeze([]),
});
