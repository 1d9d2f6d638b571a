/** Pause between two questions, which leaves the cores to what is awaited. */
const pauseMs = 20;

/** Asks until the answer is yes; fails when that takes too long. */
export async function until(
  isSo: () => Promise<boolean>,
  { patienceMs, what }: { patienceMs: number; what: string },
): Promise<void> {
  const startedMs = performance.now();
  while (!(await isSo())) {
    if (performance.now() - startedMs > patienceMs)
      throw new Error(`not within ${patienceMs} ms: ${what}`);
    await Bun.sleep(pauseMs);
  }
}
