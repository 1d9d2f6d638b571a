import type { Clock } from "../kernel/clock.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import type { SharedPart } from "./shared-state.ts";
import takeText from "./scripts/take-lease.lua" with { type: "text" };
import releaseText from "./scripts/release-lease.lua" with { type: "text" };
import type { SharedScript } from "./redis-client.ts";

/**
 * Leases on the work that one of several gateways does alone. A gateway without others holds them
 * all.
 */
export interface Leases {
  /**
   * Takes a lease until this gateway releases it or ends. Returns false where another gateway holds
   * it.
   */
  take(name: string): Promise<boolean>;
  /** Returns whether this gateway holds a lease. */
  holds(name: string): boolean;
  /** Releases a lease. */
  release(name: string): void;
}

/** How long a lease outlives its gateway, in milliseconds. */
export const leaseMs = 6_000;

/** Takes or renews a lease. Values: the id of the gateway, and the duration in milliseconds. */
const takeScript: SharedScript = {
  name: "switchyardLease",
  lua: takeText,
};

/** Releases a lease. Values: the id of the gateway. */
const releaseScript: SharedScript = {
  name: "switchyardRelease",
  lua: releaseText,
};

/** The name of the lease for work that only one gateway does, such as retention. */
const leading = "leading";

/** The part of the shared state that stores a lease. */
interface LeaseParts {
  partOf(name: string): Pick<SharedPart, "run">;
}

/** Leases on the shared server. A gateway that cannot renew a lease before it expires loses it. */
export class SharedLeases implements Leases {
  private readonly shared: LeaseParts;
  private readonly nodeId: string;
  private readonly clock: Clock;
  private readonly onError: (error: unknown) => void;
  /** The time until which each lease certainly holds, on the monotonic clock. */
  private readonly untilMs = new Map<string, number>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: {
    shared: LeaseParts;
    nodeId: string;
    clock: Clock;
    onError(error: unknown): void;
  }) {
    this.shared = options.shared;
    this.nodeId = options.nodeId;
    this.clock = options.clock;
    this.onError = options.onError;
  }

  /** Starts renewing all leases, and competing for the lease that makes this gateway the leader. */
  start(): void {
    void this.renew();
    this.timer = setInterval(() => void this.renew(), leaseMs / 3);
  }

  /** Stops renewing and releases all leases. */
  stop(): void {
    clearInterval(this.timer);
    for (const name of this.untilMs.keys()) this.release(name);
  }

  /** Whether this gateway does the work that only one gateway does. */
  get isLeading(): boolean {
    return this.holds(leading);
  }

  async take(name: string): Promise<boolean> {
    const askedMs = this.clock.monotonicMs();
    const isTaken = await this.ask(name);
    this.note(name, isTaken, askedMs);
    return isTaken;
  }

  holds(name: string): boolean {
    return (this.untilMs.get(name) ?? 0) > this.clock.monotonicMs();
  }

  release(name: string): void {
    if (!this.untilMs.delete(name)) return;
    this.run(releaseScript, name, [this.nodeId]).catch((error: unknown) => this.tell(error));
  }

  /** Renews all leases once. A gateway that is no longer the leader tries to become it again. */
  async renew(): Promise<void> {
    await Promise.all(
      [leading, ...this.untilMs.keys()].map((name) =>
        this.renewOne(name).catch((error: unknown) => this.tell(error)),
      ),
    );
  }

  /**
   * Renews one lease. Ignores the answer where the lease was released meanwhile, so that it stays
   * released.
   */
  private async renewOne(name: string): Promise<void> {
    const wasHeld = this.untilMs.has(name);
    const askedMs = this.clock.monotonicMs();
    const isTaken = await this.ask(name);
    if (wasHeld && !this.untilMs.has(name)) return;
    this.note(name, isTaken, askedMs);
  }

  private async ask(name: string): Promise<boolean> {
    return (await this.run(takeScript, name, [this.nodeId, leaseMs])) === 1;
  }

  private run(
    script: SharedScript,
    name: string,
    values: readonly (string | number)[],
  ): Promise<unknown> {
    const key = `claim:${name}`;
    return this.shared.partOf(key).run(script, { keys: [key], values });
  }

  private note(name: string, isTaken: boolean, askedMs: number): void {
    if (isTaken) this.untilMs.set(name, askedMs + leaseMs);
    else this.untilMs.delete(name);
  }

  private tell(error: unknown): void {
    if (!(error instanceof SharedStateAwayError)) this.onError(error);
  }
}
