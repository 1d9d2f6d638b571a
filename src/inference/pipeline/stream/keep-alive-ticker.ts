import type { Frames } from "../../../platform/kernel/frame-source.ts";
import { type Passing, PassingSet } from "../../../platform/kernel/passing/passing-set.ts";

/** Milliseconds of silence after which the client is sent a ping. */
const silenceMs = 10_000;

/** A wait that the ticker watches. */
interface PingedWait extends Passing {
  sinceMs: number;
  readonly isOpen: boolean;
  ping(): void;
}

/**
 * Sends pings with one timer for all streams: a client that has waited for ten seconds gets a ping
 * of its dialect.
 */
export class KeepAliveTicker {
  private readonly waits = new PassingSet<PingedWait>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly nowMs: () => number) {}

  /** Creates a wait for one stream, in which the client is sent this ping where frames are late. */
  newWait<Given extends Frames = string>(pingFrame: string): FrameWait<Given> {
    return new FrameWait(this, pingFrame);
  }

  /** Starts watching a client's wait, until `forget`. */
  watch(wait: PingedWait): void {
    this.timer ??= setInterval(this.tick, silenceMs / 4);
    wait.sinceMs = this.nowMs();
    this.waits.add(wait);
  }

  forget(wait: PingedWait): void {
    this.waits.delete(wait);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private readonly tick = (): void => {
    if (this.waits.size === 0) {
      this.stop();
      return;
    }
    const oldestMs = this.nowMs() - silenceMs;
    this.waits.forEach((wait) => {
      if (wait.isOpen && wait.sinceMs <= oldestMs) wait.ping();
    });
  };
}

/**
 * A client's wait for the next frames of its stream. It can begin again any number of times, and is
 * answered with a ping where the frames are late.
 */
class FrameWait<Given extends Frames = string> implements PingedWait {
  place = -1;
  /** When the wait began, in milliseconds of the ticker's clock. */
  sinceMs = 0;
  private readonly ticker: KeepAliveTicker;
  private readonly pingFrame: string;
  private reader: ((frames: Given | string | undefined) => void) | undefined;

  constructor(ticker: KeepAliveTicker, pingFrame: string) {
    this.ticker = ticker;
    this.pingFrame = pingFrame;
  }

  /** Whether a reader waits. */
  get isOpen(): boolean {
    return this.reader !== undefined;
  }

  /** Starts a wait: `reader` receives what is given to `give`, or a ping. */
  begin(reader: (frames: Given | string | undefined) => void): void {
    this.reader = reader;
    this.ticker.watch(this);
  }

  /** Ends the wait with frames, or with the end of the stream. */
  give(frames: Given | string | undefined): void {
    const { reader } = this;
    this.reader = undefined;
    reader?.(frames);
  }

  ping(): void {
    this.give(this.pingFrame);
  }

  /** Ends the wait for good, when the stream is over. */
  end(): void {
    this.ticker.forget(this);
  }
}

export type { FrameWait };
