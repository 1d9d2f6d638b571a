import type { KeepAliveTicker } from "../../inference/keep-alive.ts";
import type { FrameSource } from "../../platform/lib/frame-source.ts";

/** A comment, which every client passes over (WHATWG HTML, section 9.2.6). */
const pingFrame = ": ping\n";

/**
 * The frames of a source, with pings while it is silent. With `atOnce` one goes ahead of them: the head of
 * an answer leaves with its first byte, and the next event of a response may be long in coming.
 */
export function withPings(source: FrameSource, { keepAlive, atOnce }: { keepAlive: KeepAliveTicker; atOnce: boolean }): FrameSource {
  let pulled: Promise<string | undefined> | undefined;
  let headDue = atOnce;
  return {
    async next() {
      if (headDue) {
        headDue = false;
        return pingFrame;
      }
      // Frames that came while a ping was on its way are still in here.
      pulled ??= source.next();
      const frames = await keepAlive.until(pulled, pingFrame);
      if (frames !== pingFrame) pulled = undefined;
      return frames;
    },
    cancel: () => source.cancel(),
  };
}
