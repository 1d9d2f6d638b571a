/**
 * Ends this process when the one that started it closes its standard input, which also happens when
 * it is killed.
 */
export function bindToParent(): void {
  process.stdin.on("end", () => process.exit(0));
  process.stdin.on("error", () => process.exit(0));
  process.stdin.resume();
}
