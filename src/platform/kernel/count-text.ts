/** Returns a number with the noun that it counts: `1 key`, `2 keys`. */
export const countText = (count: number | bigint, noun: string): string =>
  `${count} ${noun}${Number(count) === 1 ? "" : "s"}`;
