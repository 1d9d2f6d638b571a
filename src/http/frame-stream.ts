import type { Clock } from "../platform/lib/clock.ts";
import type { FrameSource } from "../platform/lib/frame-source.ts";

/** How long a client may leave what it was sent unread before its stream ends, in milliseconds. */
const unreadMaxMs = 60_000;

/** What became of a stream, for the connection that it goes over. */
export interface StreamEnds {
  /** Nothing more comes: all of it was sent, or the client has left. */
  onEnd(): void;
  /** The source broke, which no source may: the client sees its connection end. */
  onBroken(error: unknown): void;
  /** The client reads nothing: its connection is to be closed. */
  onUnread(): void;
}

/** A stream of frames towards one client. */
interface OpenStream {
  /** Monotonic time since which the client has had no room; undefined while frames are awaited. */
  unreadSinceMs: number | undefined;
  end(): void;
}

/** The streams that a server has open, of which those whose clients have stopped reading are ended. */
export class FrameStreams {
  private readonly open = new Set<OpenStream>();
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * A byte stream of frames with backpressure end to end: the next frames are asked for when the client has room, so a slow client
   * slows the upstream instead of filling memory. (A stream of Bun's type `direct` has no backpressure.)
   */
  stream(source: FrameSource, { onEnd, onBroken, onUnread }: StreamEnds): ReadableStream<string> {
    const { open, clock } = this;
    let control: ReadableStreamDefaultController<string> | undefined;
    const each: OpenStream = {
      unreadSinceMs: undefined,
      end() {
        open.delete(each);
        onUnread();
        source.cancel();
        control?.error(new Error("the client has not read for a minute"));
      },
    };
    const close = (): void => {
      open.delete(each);
      onEnd();
      control?.close();
    };
    const give = (frames: string | undefined): void => {
      // Ended in the meantime.
      if (!open.has(each)) return;
      if (frames === undefined) return close();
      each.unreadSinceMs = clock.monotonicMs();
      control?.enqueue(frames);
    };
    const fail = (error: unknown): void => {
      open.delete(each);
      onBroken(error);
      control?.error(error);
    };
    open.add(each);
    return new ReadableStream<string>(
      {
        start(controller) {
          control = controller;
          const frames = source.ready?.();
          if (frames !== undefined && frames !== "") give(frames);
        },
        pull: () => {
          each.unreadSinceMs = undefined;
          if (source.isOver === true) return close();
          return nextFrames(source).then(give, fail);
        },
        cancel() {
          open.delete(each);
          source.cancel();
          onEnd();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Ends the streams whose clients have not read for too long. */
  sweep(): void {
    const nowMs = this.clock.monotonicMs();
    for (const stream of this.open) {
      if (stream.unreadSinceMs !== undefined && nowMs - stream.unreadSinceMs > unreadMaxMs)
        stream.end();
    }
  }
}

/** The next frames that are not empty: an empty piece would be taken for one that was sent. */
async function nextFrames(source: FrameSource): Promise<string | undefined> {
  let frames = await source.next();
  while (frames === "") frames = await source.next();
  return frames;
}
