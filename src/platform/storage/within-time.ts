/** Whether a probe succeeds within its time; a probe that comes later is ignored. */
export function succeedsWithin(timeoutMs: number, probe: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    const answer = (healthy: boolean) => {
      clearTimeout(timer);
      resolve(healthy);
    };
    probe.then(() => answer(true), () => answer(false));
  });
}
