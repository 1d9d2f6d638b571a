import { FrameWait, type KeepAliveTicker } from "../../inference/keep-alive.ts";
import type { FrameSource } from "../../platform/lib/frame-source.ts";

/** A comment, which every client passes over (WHATWG HTML, section 9.2.6). */
const pingFrame = ": ping\n";

/**
 * The frames of a source, with pings while it is silent. With `atOnce` one goes ahead of them: the head of
 * an answer leaves with its first byte, and the next event of a response may be long in coming.
 */
export function withPings(
  source: FrameSource,
  { keepAlive, atOnce }: { keepAlive: KeepAliveTicker; atOnce: boolean },
): FrameSource {
  const wait = new FrameWait(keepAlive, pingFrame);
  let pulled: Promise<string | undefined> | undefined;
  let headDue = atOnce;
  /** What came while a ping was on its way stays in `pulled` for the next wait. */
  const give = (frames: string | undefined): void => {
    if (frames === undefined) wait.end();
    if (!wait.isOpen) return;
    pulled = undefined;
    wait.give(frames);
  };
  return {
    next() {
      if (headDue) {
        headDue = false;
        return Promise.resolve(pingFrame);
      }
      const frames = wait.begin();
      pulled ??= source.next();
      void pulled.then(give);
      return frames;
    },
    cancel() {
      wait.end();
      source.cancel();
    },
  };
}
