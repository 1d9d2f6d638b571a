/** How books differ from the answers that clients got whole. */
export interface BooksDifference {
  /** Rows in the books. */
  rows: number;
  /** Answers that no row is there for. */
  lost: number;
  /** Rows beyond the first for one answer. */
  double: number;
  /** Answers with a row that no client got whole, such as those that were under way at a kill. */
  unseen: number;
}

/** Compares the ids of whole answers with those of rows. */
export function compareBooks(answers: readonly string[], rows: readonly string[]): BooksDifference {
  const shown = new Set(answers);
  const booked = new Set(rows);
  return {
    rows: rows.length,
    lost: [...shown].filter((id) => !booked.has(id)).length,
    double: rows.length - booked.size,
    unseen: [...booked].filter((id) => !shown.has(id)).length,
  };
}
