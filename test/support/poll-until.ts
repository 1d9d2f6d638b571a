/** The first pause, and the longest. */
const [pauseMs, pauseMsMax] = [10, 100];

/**
 * Asks until the answer is yes, and less often the longer it takes, which leaves the cores to what
 * is awaited; the test's own time limit ends it.
 */
export async function pollUntil(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let restMs = pauseMs; !(await isSo()); restMs = Math.min(restMs * 1.2, pauseMsMax))
    await Bun.sleep(restMs);
}
