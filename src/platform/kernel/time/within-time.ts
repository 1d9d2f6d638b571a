/**
 * Resolves with the result of work, or with `late` where that takes longer; a later result is
 * ignored. Rejects as the work does.
 */
export function withinTime<Result, Late>(
  timeoutMs: number,
  work: Promise<Result>,
  late: Late,
): Promise<Result | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(late), timeoutMs);
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Returns whether a probe succeeds within its time; a later result is ignored. */
export const succeedsWithin = (timeoutMs: number, probe: Promise<unknown>): Promise<boolean> =>
  withinTime(
    timeoutMs,
    probe.then(
      () => true,
      () => false,
    ),
    false,
  );
