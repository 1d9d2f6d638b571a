/**
 * The turns in which bodies are read for slow storage. The platform keeps one to two megabytes of each body
 * that waits, and more of each that is being read, so that only a few are read at once, however many
 * clients send. Turns are given in the order in which they were asked for.
 */
export class ReadingTurns {
  private taken = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly max: number) {}

  /** The number of bodies that wait for a turn. */
  get waitingCount(): number {
    return this.waiting.length;
  }

  /** Waits for a turn, which has to be given back. */
  async take(): Promise<void> {
    if (this.taken < this.max) this.taken += 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** Gives a turn to the next who waits. */
  giveBack(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.taken -= 1;
    else next();
  }
}
