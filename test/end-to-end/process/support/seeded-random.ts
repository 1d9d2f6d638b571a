/**
 * Numbers from 0 up to 1, the same for the same seed (Mulberry32, public domain, by Tommy
 * Ettinger).
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A seed from `SWITCHYARD_TEST_SEED`, to see a run again, or a new one. */
export const testSeed = (): number =>
  Number(process.env["SWITCHYARD_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
