/** A count beyond this is no count: the largest context windows are a thousandth of it. */
const absurdCount = 1_000_000_000;

/** Reads counts of usage and remembers whether one of them could not be true. */
export class CountReader {
  clamped = false;

  /** A count of tokens; undefined when none was reported. */
  read(value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= absurdCount)
      return value;
    this.clamped = true;
    if (typeof value !== "number" || Number.isNaN(value)) return undefined;
    return Math.min(absurdCount, Math.max(0, Math.round(value)));
  }

  /** A part of a whole; what does not fit is cut off and noted. */
  within(part: number, whole: number): number {
    if (part <= whole) return part;
    this.clamped = true;
    return whole;
  }
}
