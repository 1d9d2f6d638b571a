/**
 * Counts kept as plain numbers. A labelled `inc` or `observe` of prom-client costs 170-200 ns (labels are validated
 * and joined to a text each time), some ten of them make up a finished request; here each is one addition, and
 * prom-client sees the numbers only when someone scrapes (`exposition.ts`).
 */

/** A number that only grows. */
export class CounterCell {
  value = 0;

  inc(amount = 1): void {
    this.value += amount;
  }
}

/** A number that goes up and down. */
export class GaugeCell {
  value = 0;

  inc(): void {
    this.value += 1;
  }

  dec(): void {
    this.value -= 1;
  }
}

/** Observations counted in buckets; `counts` has one more entry than `bounds`, for what is above the last. */
export class HistogramCell {
  readonly bounds: readonly number[];
  readonly counts: number[];
  sum = 0;

  /** Upper bounds, inclusive and ascending, in the unit of the observations. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  /** Counts one observation; a clock that stepped back counts as zero, and what is no number not at all. */
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

/** A cell and what it counts. */
export interface LabelledCell<Cell> {
  labels: Record<string, string>;
  cell: Cell;
}

/** The cells of one metric, one for each tuple of label values, made when first asked for. */
export class Family<Cell> {
  readonly labelNames: readonly string[];
  private readonly create: () => Cell;
  private readonly root: Branch<Cell> = newBranch();

  constructor(labelNames: readonly string[], create: () => Cell) {
    this.labelNames = labelNames;
    this.create = create;
    if (labelNames.length === 0) this.at();
  }

  /** The cell of these label values, in the order of the label names; keep it where the labels do not change. */
  at(...values: readonly string[]): Cell {
    let branch = this.root;
    for (const value of values) {
      let next = branch.branches.get(value);
      if (next === undefined) branch.branches.set(value, (next = newBranch()));
      branch = next;
    }
    return (branch.cell ??= this.create());
  }

  /** Every cell with its labels. */
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
