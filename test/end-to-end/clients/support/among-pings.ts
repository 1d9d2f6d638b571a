import { spyOn } from "bun:test";
import { KeepAliveTicker } from "../../../../src/inference/pipeline/stream/keep-alive-ticker.ts";

/**
 * Does work while every frame of a stream comes behind two pings, as if each had taken its provider
 * half a minute.
 */
export async function amongPings<T>(work: () => Promise<T>): Promise<T> {
  const original = KeepAliveTicker.prototype.watch;
  let turn = 0;
  const spy = spyOn(KeepAliveTicker.prototype, "watch").mockImplementation(function watch(
    this: KeepAliveTicker,
    wait,
  ) {
    turn += 1;
    if (turn % 3 === 0) original.call(this, wait);
    else wait.ping();
  });
  try {
    return await work();
  } finally {
    spy.mockRestore();
    // biome-ignore lint/correctness/noUnsafeFinally: too few pings fail the test in any case.
    if (turn < 6) throw new Error("no pings were sent");
  }
}
