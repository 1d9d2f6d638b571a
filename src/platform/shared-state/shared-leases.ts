import type { Clock } from "../kernel/clock.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import type { SharedPart, SharedScript } from "./shared-state.ts";

/** What one of several gateways does alone; where there is only one, it does everything. */
export interface Leases {
  /** Makes something this gateway's until it lets go or dies; false where it is another's. */
  take(name: string): Promise<boolean>;
  /** Whether something is this gateway's. */
  holds(name: string): boolean;
  /** Lets go of something. */
  release(name: string): void;
}

/** How long a lease outlives its gateway. */
export const leaseMs = 6_000;

/** Values: who leases, for how many milliseconds. */
const takeScript: SharedScript = {
  name: "switchyardLease",
  lua: `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`,
};

/** Values: who lets go. */
const releaseScript: SharedScript = {
  name: "switchyardRelease",
  lua: "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end\nreturn 0",
};

/** The name of the lease of what is done once over all gateways, such as retention. */
const leading = "leading";

/** Where leases are kept. */
interface LeaseParts {
  partOf(name: string): Pick<SharedPart, "run">;
}

/** Leases on the shared server. One that could not be renewed for as long as it lasts is lost. */
export class SharedLeases implements Leases {
  private readonly shared: LeaseParts;
  private readonly nodeId: string;
  private readonly clock: Clock;
  private readonly onError: (error: unknown) => void;
  /** Until when each lease is certain, in monotonic time. */
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

  /** Renews every lease, and takes the one to lead, from now on. */
  start(): void {
    void this.renew();
    this.timer = setInterval(() => void this.renew(), leaseMs / 3);
  }

  /** Lets go of everything. */
  stop(): void {
    clearInterval(this.timer);
    for (const name of this.untilMs.keys()) this.release(name);
  }

  /** Whether this gateway does what is done once over all of them. */
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

  /** Renews everything once; who leads no more may lead again. */
  async renew(): Promise<void> {
    await Promise.all(
      [leading, ...this.untilMs.keys()].map((name) =>
        this.renewOne(name).catch((error: unknown) => this.tell(error)),
      ),
    );
  }

  /** What was let go of while it was renewed stays so. */
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
