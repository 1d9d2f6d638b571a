import { hourMs, minuteMs, type Clock } from "../platform/kernel/clock.ts";
import type { ProviderKeys } from "./provider-keys.ts";
import type { ProviderKeyDirectory } from "./provider-key-directory.ts";
import type { ProviderKey } from "./provider-key.ts";

/**
 * The outcome of a probe; `unknown` where the provider could not be reached, or said nothing about
 * the key.
 */
export type ProbeOutcome = "accepted" | "refused" | "unknown";

/** What a probe found out: its outcome, and the provider's words, or why it was not reached. */
export interface Probe {
  outcome: ProbeOutcome;
  reason: string | null;
}

/** Sends a provider a request that costs nothing, with a key. */
export type ProbeKey = (probe: { providerId: string; secret: string }) => Promise<Probe>;

/** Milliseconds until a refused key is probed again, doubled each time up to six hours. */
const firstWaitMs = 5 * minuteMs;
const longestWaitMs = 6 * hourMs;

/** Finds out when donated keys work again that their provider refused. */
export class KeyProber {
  private readonly waits = new Map<string, { sealed: string; dueMs: number; waitMs: number }>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly parts: {
      directory: ProviderKeyDirectory;
      keys: ProviderKeys;
      probe: ProbeKey;
      clock: Clock;
      onError(error: unknown): void;
      /**
       * Returns whether this gateway, among several on the database, runs the jobs that run once;
       * absent where there is one.
       */
      isLeader?: (() => boolean) | undefined;
    },
  ) {}

  /** Starts to probe what is due every minute. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.parts.isLeader?.() === false) return;
      this.running = this.running.then(() => this.probeDue());
    }, minuteMs);
  }

  /** Stops; resolves when a probe in progress has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }

  /** Probes every paused key that is due, one after another. */
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

  /** Probes one key now. The outcome is in force when this resolves. */
  async probe(key: ProviderKey): Promise<Probe> {
    const { keys, probe, onError } = this.parts;
    try {
      const found = await probe({ providerId: key.providerId, secret: keys.secretOf(key) });
      if (found.outcome !== "unknown") await keys.noteProbe(key, found);
      return found;
    } catch (error) {
      onError(error);
      return { outcome: "unknown", reason: null };
    }
  }

  /** Probes a key that is not stored. */
  async probeSecret(probed: { providerId: string; secret: string }): Promise<Probe> {
    try {
      return await this.parts.probe(probed);
    } catch (error) {
      this.parts.onError(error);
      return { outcome: "unknown", reason: null };
    }
  }

  /**
   * Returns whether a key is due, and doubles its next wait if it is. A rotated key starts again
   * with the first wait.
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
