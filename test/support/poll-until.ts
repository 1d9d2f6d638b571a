/**
 * Asks a hundred times a second until the answer is yes, which leaves the cores to what is awaited;
 * the test's own time limit ends it.
 */
export async function pollUntil(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await Bun.sleep(10);
}
