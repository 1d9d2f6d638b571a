/**
 * Returns the microseconds that one call takes in the fastest of many short batches. A busy machine
 * interrupts most batches, and the first ones run before the code is compiled; the fastest shows
 * what the code itself needs.
 */
export function leastMicroseconds(
  work: () => unknown,
  { calls, batches = 200 }: { calls: number; batches?: number },
): number {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < batches; batch += 1) {
    const startMs = performance.now();
    for (let call = 0; call < calls; call += 1) work();
    leastMs = Math.min(leastMs, performance.now() - startMs);
  }
  return (leastMs / calls) * 1000;
}
