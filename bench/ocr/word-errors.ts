/** Words of Markdown, without what marks headings, lists and tables. */
export function wordsOf(markdown: string): string[] {
  const plain = markdown
    .replace(/^[|\s:-]+$/gm, " ")
    .replace(/\\([\\`*_<>|#])/g, "$1")
    .replace(/[|#*]/g, " ");
  return plain.split(/\s+/).filter((word) => word !== "" && word !== "-");
}

/**
 * Words that have to be changed, added or taken away to get from what was read to what stands there
 * (Levenshtein).
 */
export function wordErrors(expected: readonly string[], read: readonly string[]): number {
  let row = Array.from({ length: read.length + 1 }, (_, index) => index);
  expected.forEach((word, index) => {
    const next = [index + 1];
    read.forEach((other, place) => {
      const changed = (row[place] ?? 0) + (other === word ? 0 : 1);
      next.push(Math.min(changed, (row[place + 1] ?? 0) + 1, (next[place] ?? 0) + 1));
    });
    row = next;
  });
  return row[read.length] ?? 0;
}
