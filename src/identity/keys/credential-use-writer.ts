import type { CredentialUseStore } from "./credential-use-store.ts";
import type { CredentialUses } from "./credential-uses.ts";

/** Milliseconds that a use may be known in memory alone. A crash loses only a date, never money. */
const writeEveryMs = 10_000;

/**
 * Writes last uses in batches: one statement for all keys that were used since the previous batch.
 */
export class CredentialUseWriter {
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly options: {
      uses: CredentialUses;
      store: CredentialUseStore;
      onError(error: unknown): void;
    },
  ) {}

  /** Starts to write every ten seconds, where anything changed. */
  start(): void {
    this.timer = setInterval(() => void this.flush(), writeEveryMs);
  }

  /** Writes the changes. What the database refuses is tried again next time. */
  flush(): Promise<void> {
    this.running = this.running.then(() => this.writeNew());
    return this.running;
  }

  /** Writes the remaining changes and stops. */
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
