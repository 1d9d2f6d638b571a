/** Milliseconds between two runs of the same thing. */
const spaceMs = 1_000;

/**
 * Runs things that servers cause, each at once and then at most once a second, however often it is
 * asked for. The last one asked for is always run.
 */
export class SpacedRuns {
  private readonly spaceMs: number;
  /** What to run next of each that ran within the last second. */
  private readonly recent = new Map<string, (() => void) | undefined>();

  constructor(ms = spaceMs) {
    this.spaceMs = ms;
  }

  /** Runs the work of a key, now or when its second is over. */
  run(key: string, work: () => void): void {
    if (this.recent.has(key)) {
      this.recent.set(key, work);
      return;
    }
    this.recent.set(key, undefined);
    setTimeout(() => this.endSpace(key), this.spaceMs).unref();
    work();
  }

  private endSpace(key: string): void {
    const next = this.recent.get(key);
    this.recent.delete(key);
    if (next !== undefined) this.run(key, next);
  }
}
