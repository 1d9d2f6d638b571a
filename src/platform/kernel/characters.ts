/**
 * Whether a text has more than `most` characters; one beyond the first 65,536 counts once, although
 * it counts twice in `length`.
 */
export function isLongerThan(text: string, most: number): boolean {
  if (text.length <= most) return false;
  return text.length > 2 * most || Array.from(text).length > most;
}
