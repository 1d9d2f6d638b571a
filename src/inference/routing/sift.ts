/** What happens to each of a list. */
interface Sieve<T> {
  keeps(one: T): boolean;
  /** Told of each that is not kept, in order. */
  drop(one: T): void;
}

/** Those of a list that are kept, in order: the list itself where that is all of them, as it mostly is. */
export function sift<T>(all: T[], { keeps, drop }: Sieve<T>): T[] {
  let kept: T[] | undefined;
  for (let index = 0; index < all.length; index += 1) {
    const one = all[index] as T;
    if (keeps(one)) kept?.push(one);
    else {
      kept ??= all.slice(0, index);
      drop(one);
    }
  }
  return kept ?? all;
}
