/** The first pause between two questions, and the longest; both leave the cores to what is awaited. */
const [pauseMs, pauseMsMax] = [20, 100];

/** Asks until the answer is yes; fails when that takes too long. */
export async function until(
  isSo: () => Promise<boolean>,
  { patienceMs, what }: { patienceMs: number; what: string },
): Promise<void> {
  const startedMs = performance.now();
  for (let restMs = pauseMs; !(await isSo()); restMs = Math.min(restMs * 1.2, pauseMsMax)) {
    if (performance.now() - startedMs > patienceMs)
      throw new Error(`not within ${patienceMs} ms: ${what}`);
    await Bun.sleep(restMs);
  }
}
