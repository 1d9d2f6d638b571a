/** What is held of a request whose worst case is more than an eighth of what is free. */
export interface TightHold {
  /** What the hold begins with. */
  beginNano: bigint;
  /** A hold of less than this is refused. */
  leastNano: bigint;
  /** An eighth of what is free is held where that is more than the beginning: the hold does not grow later. */
  takesShare: boolean;
}

/** A worst case of at most this part of what is free is held whole. */
export const shareOfFree = 8n;

const largerOf = (one: bigint, other: bigint): bigint => (one > other ? one : other);
const smallerOf = (one: bigint, other: bigint): bigint => (one < other ? one : other);

/**
 * What is held for a request; undefined where too little is free for it. `ledger-scripts.ts` has the same rule for several gateways.
 * @example borneOf({ freeNano: 800n, ceilingNano: 100n, tight }) // 100n: an eighth of what is free
 */
export function borneOf(
  { freeNano, ceilingNano, tight }: { freeNano: bigint; ceilingNano: bigint; tight: (() => TightHold) | undefined },
): bigint | undefined {
  if (ceilingNano * shareOfFree <= freeNano) return ceilingNano;
  if (freeNano <= 0n) return undefined;
  if (tight === undefined) return smallerOf(ceilingNano, freeNano);
  const { beginNano, leastNano, takesShare } = tight();
  if (freeNano < leastNano) return undefined;
  const wanted = takesShare ? largerOf(beginNano, freeNano / shareOfFree) : beginNano;
  return smallerOf(smallerOf(ceilingNano, wanted), freeNano);
}
