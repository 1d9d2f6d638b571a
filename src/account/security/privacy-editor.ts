import type { Clock } from "../../platform/lib/clock.ts";
import { Turns } from "../turns.ts";
import type { Privacy, PrivacyDirectory, PrivacyOwner } from "./privacy.ts";
import type { PrivacyStore } from "./privacy-store.ts";

/** Changes what workspaces and keys demand of providers; what is answered is in force. */
export class PrivacyEditor {
  private readonly options: { store: PrivacyStore; directory: PrivacyDirectory; clock: Clock };
  private readonly turns = new Turns();

  constructor(options: PrivacyEditor["options"]) {
    this.options = options;
  }

  /** Changes some of it; what is left out stays as it is. */
  change(owner: PrivacyOwner, changes: Partial<Privacy>): Promise<Privacy> {
    const { store, directory, clock } = this.options;
    return this.turns.run(owner.ownerId, async () => {
      const privacy = { ...directory.of(owner.ownerId), ...changes };
      await store.save(owner, { privacy, nowMs: clock.nowMs() });
      directory.put(owner.ownerId, privacy);
      return privacy;
    });
  }
}
