import type { CredentialUseStore } from "./credential-use-store.ts";
import type { CredentialUses } from "./credential-uses.ts";

/** How long a use may be known in memory alone; what a crash loses of it is a date, never money. */
const writeEveryMs = 10_000;

/** Writes last uses in batches: one statement for all keys that were used since the last one. */
export class CredentialUseWriter {
  private readonly options: {
    uses: CredentialUses;
    store: CredentialUseStore;
    onError(error: unknown): void;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: CredentialUseWriter["options"]) {
    this.options = options;
  }

  /** Writes every ten seconds from now on, whenever there is something new. */
  start(): void {
    this.timer = setInterval(() => void this.flush(), writeEveryMs);
  }

  /** Writes what is new; what the database refuses is tried again the next time. */
  flush(): Promise<void> {
    this.running = this.running.then(() => this.writeNew());
    return this.running;
  }

  /** Writes the rest and ends. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.flush();
  }

  private async writeNew(): Promise<void> {
    const { uses, store, onError } = this.options;
    const taken = uses.takeUnwritten();
    if (taken.length === 0) return;
    try {
      await store.write(taken);
    } catch (error) {
      uses.putBack(taken.map(({ id }) => id));
      onError(error);
    }
  }
}
