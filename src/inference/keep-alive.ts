/** Silence after which the client is told that its stream still lives. */
const silenceMs = 10_000;

/**
 * One timer for all streams: clients that have waited for ten seconds get a ping of their
 * dialect.
 */
export class KeepAliveTicker {
  private readonly waits = new Set<FrameWait>();
  private readonly nowMs: () => number;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** A client waits from now on; its wait is looked after until `forget`. */
  watch(wait: FrameWait): void {
    this.timer ??= setInterval(this.tick, silenceMs / 4);
    wait.sinceMs = this.nowMs();
    this.waits.add(wait);
  }

  forget(wait: FrameWait): void {
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
    for (const wait of this.waits) if (wait.isOpen && wait.sinceMs <= oldestMs) wait.ping();
  };
}

/** A client's wait for the next frames of its stream, which may begin again and again; in place of late ones it gets a ping. */
export class FrameWait {
  /** When the wait began, in milliseconds of the ticker's clock. */
  sinceMs = 0;
  private readonly ticker: KeepAliveTicker;
  private readonly pingFrame: string;
  private resolve: ((frames: string | undefined) => void) | undefined;

  constructor(ticker: KeepAliveTicker, pingFrame: string) {
    this.ticker = ticker;
    this.pingFrame = pingFrame;
  }

  /** Whether somebody waits. */
  get isOpen(): boolean {
    return this.resolve !== undefined;
  }

  /** Settles with what `give` is told, or with a ping. */
  begin(): Promise<string | undefined> {
    const frames = new Promise<string | undefined>(this.keep);
    this.ticker.watch(this);
    return frames;
  }

  /** Ends the wait with frames, or with the end of the stream. */
  give(frames: string | undefined): void {
    const { resolve } = this;
    this.resolve = undefined;
    resolve?.(frames);
  }

  ping(): void {
    this.give(this.pingFrame);
  }

  /** The stream is over: nobody waits for it again. */
  end(): void {
    this.ticker.forget(this);
  }

  private readonly keep = (resolve: (frames: string | undefined) => void): void => {
    this.resolve = resolve;
  };
}
