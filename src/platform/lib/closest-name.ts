/** The known name that a misspelt one most likely means; undefined when none is close. */
export function closestName(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  // Two letters swapped count as two; a name that has to change altogether was not meant.
  let bestDistance = Math.min(Math.max(2, Math.floor(name.length / 3)) + 1, name.length);
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** Insertions, deletions and replacements between two words (Levenshtein). */
function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
