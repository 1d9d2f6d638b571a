/**
 * Returns the fields of a record or a row that a change gave other values. Only they are written, so
 * that what another gateway has changed in others meanwhile stays.
 */
export const changesOf = <Record extends object>(before: Record, after: Record): Partial<Record> =>
  Object.fromEntries(
    Object.entries(after).filter(([name, value]) => before[name as keyof Record] !== value),
  ) as Partial<Record>;
