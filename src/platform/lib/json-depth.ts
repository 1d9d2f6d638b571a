/**
 * Whether a parsed JSON value is nested more than `levelsMax` deep. Walks level by level: values that would
 * overflow the stack are what this is for.
 */
export function isDeeperThan(value: unknown, levelsMax: number): boolean {
  let level = containersIn([value]);
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === levelsMax) return true;
    level = level.flatMap((container) =>
      containersIn(Array.isArray(container) ? container : Object.values(container)),
    );
  }
  return false;
}

const containersIn = (values: readonly unknown[]): object[] =>
  values.filter((value): value is object => typeof value === "object" && value !== null);
