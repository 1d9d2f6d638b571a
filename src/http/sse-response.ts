import type { FrameSource } from "../platform/lib/frame-source.ts";

/** Headers that keep every proxy on the way from buffering or changing a stream. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/**
 * A byte stream of frames with backpressure end to end: the next frame is asked for when the client
 * has room, so a slow client slows the upstream instead of filling memory.
 */
export function frameStream(source: FrameSource): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const frames = await source.next();
      if (frames === undefined) controller.close();
      else controller.enqueue(encoder.encode(frames));
    },
    cancel() {
      source.cancel();
    },
  }, { highWaterMark: 0 });
}
