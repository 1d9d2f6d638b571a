/** A number that only grows. */
class CounterCell {
  value = 0;

  inc(amount = 1): void {
    this.value += amount;
  }
}

/** A number that goes up and down. */
class GaugeCell {
  value = 0;

  inc(): void {
    this.value += 1;
  }

  dec(): void {
    this.value -= 1;
  }
}

/**
 * Observations counted in buckets. `counts` has one more entry than `bounds`, for what is above the
 * last.
 */
class HistogramCell {
  readonly counts: number[];
  sum = 0;

  /** `bounds` are the upper bounds, inclusive and ascending, in the unit of the observations. */
  constructor(readonly bounds: readonly number[]) {
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  /**
   * Counts one observation. A negative one, after a clock was set back, counts as zero; NaN is
   * ignored.
   */
  observe(value: number): void {
    if (Number.isNaN(value)) return;
    const amount = value > 0 ? value : 0;
    let index = 0;
    while (index < this.bounds.length && amount > (this.bounds[index] ?? 0)) index += 1;
    this.counts[index] = (this.counts[index] ?? 0) + 1;
    this.sum += amount;
  }
}

interface Branch<Cell> {
  branches: Map<string, Branch<Cell>>;
  cell?: Cell;
}

const newBranch = <Cell>(): Branch<Cell> => ({ branches: new Map() });

/** A cell and its labels. */
export interface LabelledCell<Cell> {
  labels: Record<string, string>;
  cell: Cell;
}

/** The cells of one metric, one for each tuple of label values, created on first use. */
export class MetricFamily<Cell> {
  private readonly root: Branch<Cell> = newBranch();

  constructor(
    readonly labelNames: readonly string[],
    private readonly create: () => Cell,
  ) {
    if (labelNames.length === 0) this.at();
  }

  /**
   * Returns the cell of these label values, in the order of the label names. Callers may keep it
   * where the labels do not change.
   */
  at(...values: readonly string[]): Cell {
    let branch = this.root;
    for (const value of values) {
      let next = branch.branches.get(value);
      if (next === undefined) branch.branches.set(value, (next = newBranch()));
      branch = next;
    }
    return (branch.cell ??= this.create());
  }

  /** Returns every cell with its labels. */
  entries(): LabelledCell<Cell>[] {
    return this.below(this.root, {});
  }

  private below(branch: Branch<Cell>, labels: Record<string, string>): LabelledCell<Cell>[] {
    const name = this.labelNames[Object.keys(labels).length];
    if (name === undefined) return branch.cell === undefined ? [] : [{ labels, cell: branch.cell }];
    return [...branch.branches].flatMap(([value, next]) =>
      this.below(next, { ...labels, [name]: value }),
    );
  }
}

export type { CounterCell, GaugeCell, HistogramCell };

/** Creates a number that only grows. */
export const newCounter = (): CounterCell => new CounterCell();

/** Creates a number that goes up and down. */
export const newGauge = (): GaugeCell => new GaugeCell();

/** Creates a histogram; `bounds` are the upper bounds of its buckets, as a `HistogramCell` has them. */
export const newHistogram = (bounds: readonly number[]): HistogramCell => new HistogramCell(bounds);

/** Creates the counters of one metric. */
export const counterFamily = (...labelNames: string[]): MetricFamily<CounterCell> =>
  new MetricFamily(labelNames, newCounter);

/** Creates the histograms of one metric. */
export const histogramFamily = (
  bounds: readonly number[],
  ...labelNames: string[]
): MetricFamily<HistogramCell> => new MetricFamily(labelNames, () => newHistogram(bounds));
