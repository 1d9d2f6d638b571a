import { hourMs, minuteMs, type Clock } from "../platform/kernel/clock.ts";
import type { ProviderKey, ProviderKeyDirectory, ProviderKeys } from "./provider-keys.ts";

/**
 * What a probe found; `unknown` where the provider could not be asked, or said nothing about the
 * key.
 */
export type ProbeOutcome = "accepted" | "refused" | "unknown";

/** Asks a provider for something that costs nothing, with a key. */
export type ProbeKey = (probe: { providerId: string; secret: string }) => Promise<ProbeOutcome>;

/**
 * A refused key is asked about again after five minutes, then after twice as long each time, up to
 * six hours.
 */
const firstWaitMs = 5 * minuteMs;
const longestWaitMs = 6 * hourMs;

/** Finds out when donated keys work again that their provider refused. */
export class KeyProber {
  private readonly parts: {
    directory: ProviderKeyDirectory;
    keys: ProviderKeys;
    probe: ProbeKey;
    clock: Clock;
    onError(error: unknown): void;
    /** Where several gateways share the database, whether this one does what is done once. */
    isLeader?: (() => boolean) | undefined;
  };
  private readonly waits = new Map<string, { sealed: string; dueMs: number; waitMs: number }>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(parts: KeyProber["parts"]) {
    this.parts = parts;
  }

  /** Asks about what is due every minute from now on. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.parts.isLeader?.() === false) return;
      this.running = this.running.then(() => this.probeDue());
    }, minuteMs);
  }

  /** Resolves when a probe that is under way has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }

  /** Asks about every paused key whose time has come, one after the other. */
  async probeDue(): Promise<void> {
    const { directory } = this.parts;
    const paused = directory
      .allDonated()
      .filter(({ donation }) => donation?.paused === "credential");
    const ids = new Set(paused.map(({ id }) => id));
    for (const id of this.waits.keys()) if (!ids.has(id)) this.waits.delete(id);
    for (const key of paused) {
      if (this.isDue(key)) await this.probe(key);
    }
  }

  /** Asks about one key now. What it finds is in force when this resolves. */
  async probe(key: ProviderKey): Promise<ProbeOutcome> {
    const { keys, probe, onError } = this.parts;
    try {
      const outcome = await probe({ providerId: key.providerId, secret: keys.secretOf(key) });
      if (outcome !== "unknown") await keys.noteProbe(key, outcome === "accepted");
      return outcome;
    } catch (error) {
      onError(error);
      return "unknown";
    }
  }

  /** Asks about a key that is not stored. */
  async probeSecret(probed: { providerId: string; secret: string }): Promise<ProbeOutcome> {
    try {
      return await this.parts.probe(probed);
    } catch (error) {
      this.parts.onError(error);
      return "unknown";
    }
  }

  /**
   * Whether a key's time has come; what is due waits twice as long the next time. A rotated key
   * begins again.
   */
  private isDue({ id, sealed }: ProviderKey): boolean {
    const nowMs = this.parts.clock.monotonicMs();
    const known = this.waits.get(id);
    if (known === undefined) {
      this.waits.set(id, { sealed, dueMs: nowMs + firstWaitMs, waitMs: firstWaitMs });
      return false;
    }
    if (known.sealed === sealed && known.dueMs > nowMs) return false;
    const waitMs =
      known.sealed === sealed ? Math.min(longestWaitMs, known.waitMs * 2) : firstWaitMs;
    this.waits.set(id, { sealed, dueMs: nowMs + waitMs, waitMs });
    return true;
  }
}
