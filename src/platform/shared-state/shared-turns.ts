import type { SharedChannel } from "./shared-channel.ts";
import type { Leases } from "./shared-leases.ts";

/** How long a gateway waits before it checks without having been notified, in milliseconds. */
const lookEveryMs = 500;

/** The options of turns: their name, and what the gateways share them through. */
export interface SharedTurnsOptions {
  name: string;
  /** The leases on the work; the lease of a gateway that is killed expires seconds later. */
  leases: Pick<Leases, "take" | "release">;
  /** The channel on which a gateway announces the end of its turn; announcements may be lost. */
  channel: Pick<SharedChannel, "on" | "publish">;
}

/**
 * Work that several gateways need and one of them does for all, for as long as that gateway lives.
 */
export class SharedTurns {
  private readonly waiting = new Map<string, Set<() => void>>();

  constructor(private readonly options: SharedTurnsOptions) {
    options.channel.on(`turns-${options.name}`, (key) => {
      for (const wake of [...(this.waiting.get(key) ?? [])]) wake();
    });
  }

  /** Takes a piece of work for this gateway. Returns false while another gateway has it. */
  take(key: string): Promise<boolean> {
    return this.options.leases.take(this.leaseOf(key));
  }

  /** Releases a piece of work and notifies the other gateways. */
  release(key: string): void {
    const { leases, channel, name } = this.options;
    leases.release(this.leaseOf(key));
    channel.publish(`turns-${name}`, key);
  }

  /**
   * Resolves when another gateway announces that it is done, and after half a second in any case.
   */
  ended(key: string): Promise<void> {
    return new Promise((resolve) => {
      const others = this.waiting.get(key) ?? new Set();
      const wake = (): void => {
        clearTimeout(timer);
        others.delete(wake);
        if (others.size === 0 && this.waiting.get(key) === others) this.waiting.delete(key);
        resolve();
      };
      const timer = setTimeout(wake, lookEveryMs);
      this.waiting.set(key, others.add(wake));
    });
  }

  private leaseOf(key: string): string {
    return `${this.options.name}:${key}`;
  }
}
