/**
 * Counts of attempts and failures over a window that advances cell by cell. Recording and reading
 * take constant time.
 */
export class RollingCounts {
  private readonly cellMs: number;
  private readonly attemptCells: Uint32Array;
  private readonly failureCells: Uint32Array;
  private cell = 0;
  private attemptSum = 0;
  private failureSum = 0;

  /** A window of `cells` cells, the youngest of which is still being filled. */
  constructor({ cells, cellMs }: { cells: number; cellMs: number }) {
    this.cellMs = cellMs;
    this.attemptCells = new Uint32Array(cells);
    this.failureCells = new Uint32Array(cells);
  }

  record(nowMs: number, failed: boolean): void {
    this.advance(nowMs);
    const index = this.cell % this.attemptCells.length;
    this.attemptCells[index] = (this.attemptCells[index] ?? 0) + 1;
    this.attemptSum += 1;
    if (!failed) return;
    this.failureCells[index] = (this.failureCells[index] ?? 0) + 1;
    this.failureSum += 1;
  }

  attempts(nowMs: number): number {
    this.advance(nowMs);
    return this.attemptSum;
  }

  failures(nowMs: number): number {
    this.advance(nowMs);
    return this.failureSum;
  }

  private advance(nowMs: number): void {
    const cell = Math.floor(nowMs / this.cellMs);
    if (cell <= this.cell) return;
    const { length } = this.attemptCells;
    for (let passed = Math.max(this.cell + 1, cell - length + 1); passed <= cell; passed += 1) {
      const index = passed % length;
      this.attemptSum -= this.attemptCells[index] ?? 0;
      this.failureSum -= this.failureCells[index] ?? 0;
      this.attemptCells[index] = 0;
      this.failureCells[index] = 0;
    }
    this.cell = cell;
  }
}
