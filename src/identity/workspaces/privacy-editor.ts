import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { PrivacyDirectory } from "./privacy-directory.ts";
import type { PrivacyStore, PrivacyOwner } from "./privacy-store.ts";
import type { Privacy } from "./privacy.ts";

/** Changes to the settings. Absent fields stay as they are. */
type PrivacyChanges = Partial<Omit<Privacy, "contentsSinceMs">> & {
  /** Whether prompts and answers are kept from now on. */
  keepsContents?: boolean | undefined;
};

/**
 * Changes what workspaces and keys require of providers. A change is in force when it is answered.
 */
export class PrivacyEditor {
  private readonly mutex = new KeyedMutex();

  constructor(
    private readonly options: {
      store: Pick<PrivacyStore, "find" | "save">;
      directory: PrivacyDirectory;
      clock: Clock;
    },
  ) {}

  /**
   * Changes some of the settings; absent ones stay as they are. Zero data retention ends the
   * keeping of prompts and answers. Throws `conflict` where both are requested.
   */
  change(owner: PrivacyOwner, changes: PrivacyChanges): Promise<Privacy> {
    const { store, directory, clock } = this.options;
    return this.mutex.run(owner.ownerId, async () => {
      // From the database, since another gateway may have just changed other settings.
      const before = await store.find(owner.ownerId);
      const privacy = changed(before, changes, clock.nowMs());
      await store.save(owner, { privacy, nowMs: clock.nowMs() });
      directory.put(owner.ownerId, privacy);
      return privacy;
    });
  }
}

function changed(
  before: Privacy,
  { keepsContents, ...changes }: PrivacyChanges,
  nowMs: number,
): Privacy {
  const { contentsSinceMs, ...privacy } = { ...before, ...changes };
  if (privacy.zdr && keepsContents === true)
    throw new GatewayError(
      "conflict",
      "keep_contents: the workspace demands zero data retention. Send zdr: false as well, or leave keep_contents out.",
      { param: "keep_contents" },
    );
  const isKept = !privacy.zdr && (keepsContents ?? contentsSinceMs !== undefined);
  // What was kept before, even in this millisecond, does not become visible again.
  return isKept ? { ...privacy, contentsSinceMs: contentsSinceMs ?? nowMs + 1 } : privacy;
}
