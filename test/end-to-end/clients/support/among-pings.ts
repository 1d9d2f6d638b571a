import { spyOn } from "bun:test";
import { KeepAliveTicker } from "../../../../src/inference/keep-alive.ts";

/** Does work while every frame of a stream comes behind two pings, as if each had taken its provider half a minute. */
export async function amongPings<T>(work: () => Promise<T>): Promise<T> {
  const original = KeepAliveTicker.prototype.until;
  let turn = 0;
  const spy = spyOn(KeepAliveTicker.prototype, "until").mockImplementation(function until(
    this: KeepAliveTicker,
    frames,
    pingFrame,
  ) {
    turn += 1;
    return turn % 3 === 0 ? original.call(this, frames, pingFrame) : Promise.resolve(pingFrame);
  });
  try {
    return await work();
  } finally {
    spy.mockRestore();
    if (turn < 6) throw new Error("no pings were sent");
  }
}
