/** What happens to each of a list. */
export interface Sieve<T> {
  keeps: (one: T) => boolean;
  /** Told of each that is not kept, in order. */
  drop: (one: T) => void;
}

/** Those of a list that are kept, in order: the list itself where that is all of them, as it mostly is. */
export function sift<T>(all: T[], { keeps, drop }: Sieve<T>): T[] {
  if (all.every((one) => keeps(one))) return all;
  return all.filter((one) => {
    const kept = keeps(one);
    if (!kept) drop(one);
    return kept;
  });
}

/** Sifts each of several lists; those that have nothing left are gone. */
export function siftEach<T>(lists: T[][], sieve: Sieve<T>): T[][] {
  return lists.map((list) => sift(list, sieve)).filter(({ length }) => length > 0);
}
