import type { FrameSource } from "../platform/lib/frame-source.ts";

/** Headers that keep every proxy on the way from buffering or changing a stream. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/**
 * A byte stream of frames with backpressure end to end: the next frame is asked for when the client
 * has room, so a slow client slows the upstream instead of filling memory. Bun writes such a direct stream
 * to the socket itself, at under half of what a stream with a queue costs for each frame.
 */
export function frameStream(source: FrameSource): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    type: "direct",
    async pull(controller) {
      for (let frames = await source.next(); frames !== undefined; frames = await source.next()) {
        const written = controller.write(frames);
        controller.flush();
        // A promise where the client has no room left.
        if (typeof written !== "number") await written;
      }
      controller.close();
    },
    cancel() {
      source.cancel();
    },
  });
}
