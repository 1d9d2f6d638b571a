/** Words of a text, in lower case. */
const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/**
 * A vector of length 1 that represents a text: each word counts at the place where its hash falls,
 * so that texts with words in common lie near to each other. The same text always has the same
 * vector.
 */
export function textVector(text: string, dimensions: number): number[] {
  const vector = new Float64Array(dimensions);
  const words = wordsOf(text);
  for (const word of words.length > 0 ? words : [text]) {
    const place = Number(BigInt.asUintN(32, BigInt(Bun.hash(word)))) % dimensions;
    vector[place] = (vector[place] ?? 0) + 1;
  }
  const length = Math.hypot(...vector);
  return Array.from(vector, (value) => value / length);
}

/** How near two texts lie to each other: 0 without a common word, 1 for the same words. */
export function similarity(left: string, right: string): number {
  const one = textVector(left, 4096);
  const other = textVector(right, 4096);
  const product = one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
  return Math.min(1, Math.round(product * 1e6) / 1e6);
}
