/** Silence after which the client is told that its stream still lives. */
const silenceMs = 10_000;

interface Waiting {
  sinceMs: number;
  pingFrame: string;
  wake(frame: string): void;
}

/**
 * One timer for all streams: those that have been silent for ten seconds get a ping of
 * their dialect.
 */
export class KeepAliveTicker {
  private readonly waiting = new Set<Waiting>();
  private readonly nowMs: () => number;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** Settles with the frames, or with a ping when they take too long; the frames can be awaited again. */
  until(frames: Promise<string | undefined>, pingFrame: string): Promise<string | undefined> {
    this.timer ??= setInterval(this.tick, silenceMs / 4);
    return new Promise((resolve, reject) => {
      const entry: Waiting = { sinceMs: this.nowMs(), pingFrame, wake: resolve };
      this.waiting.add(entry);
      frames.then((value) => {
        this.waiting.delete(entry);
        resolve(value);
      }, (error: unknown) => {
        this.waiting.delete(entry);
        reject(error);
      });
    });
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private readonly tick = (): void => {
    if (this.waiting.size === 0) {
      this.stop();
      return;
    }
    const oldestMs = this.nowMs() - silenceMs;
    for (const entry of this.waiting) {
      if (entry.sinceMs > oldestMs) continue;
      this.waiting.delete(entry);
      entry.wake(entry.pingFrame);
    }
  };
}
