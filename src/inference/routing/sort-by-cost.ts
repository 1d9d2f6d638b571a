/** Beyond this the runtime's sort is faster, although it copies the list and calls back for each comparison. */
const insertedMax = 64;

/** Sorts in place, the lowest cost first; equals stay as they are. Routes of one model are few, and planning sorts for every request. */
export function sortByCost<T extends { readonly cost: number }>(all: T[]): void {
  if (all.length > insertedMax) {
    all.sort((left, right) => left.cost - right.cost);
    return;
  }
  for (let index = 1; index < all.length; index += 1) {
    const one = all[index] as T;
    const { cost } = one;
    let place = index;
    for (; place > 0 && (all[place - 1] as T).cost > cost; place -= 1)
      all[place] = all[place - 1] as T;
    all[place] = one;
  }
}
