/**
 * Returns a function that returns uniform numbers from 0 to 1, always the same for a seed. It is
 * the generator of Steele, Lea and Flood (SplitMix32's finalizer, "Fast splittable pseudorandom
 * number generators", 2014).
 */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}
