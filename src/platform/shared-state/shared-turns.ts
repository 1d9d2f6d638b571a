import type { SharedChannel } from "./shared-channel.ts";
import type { Leases } from "./shared-leases.ts";

/** How often who waits looks by itself, in milliseconds. */
const lookEveryMs = 500;

/** What turns are shared over, and what they are about. */
export interface SharedTurnsOptions {
  name: string;
  /** Leases outlive a gateway that is killed by seconds. */
  leases: Pick<Leases, "take" | "release">;
  /** Who ends says so; what is said while a listener is away it never hears. */
  channel: Pick<SharedChannel, "on" | "say">;
}

/** Work that several gateways have to do and one does for all, as long as it lives. */
export class SharedTurns {
  private readonly options: SharedTurnsOptions;
  private readonly waiting = new Map<string, Set<() => void>>();

  constructor(options: SharedTurnsOptions) {
    this.options = options;
    options.channel.on(`turns-${options.name}`, (key) => {
      for (const wake of [...(this.waiting.get(key) ?? [])]) wake();
    });
  }

  /** Makes some work this gateway's; false while it is another's. */
  take(key: string): Promise<boolean> {
    return this.options.leases.take(this.leaseOf(key));
  }

  /** Lets go of it, and tells the others. */
  release(key: string): void {
    const { leases, channel, name } = this.options;
    leases.release(this.leaseOf(key));
    channel.say(`turns-${name}`, key);
  }

  /** Resolves when another gateway tells that it is done, and after half a second in any case. */
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
