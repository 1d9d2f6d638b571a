import type { FrameSource } from "../../../platform/kernel/frame-source.ts";

/** The streams of an answer's rounds. */
export interface StreamedRounds {
  /** The stream of the first round. */
  first: FrameSource;
  /** Opens the stream of the next round. */
  ask(): Promise<FrameSource>;
  /** Stops the tools that are running. */
  onCancel(): void;
}

/** The streams of several rounds as one, in a client's dialect. */
export abstract class RoundStream implements FrameSource {
  protected current: FrameSource;
  protected isCancelled = false;
  private readonly frames: AsyncGenerator<string, void>;

  constructor(private readonly streams: StreamedRounds) {
    this.current = streams.first;
    this.frames = this.run();
  }

  /** Yields the frames of all rounds. It begins with the first `next`. */
  protected abstract run(): AsyncGenerator<string, void>;

  /** Opens the next round, which becomes the current one. */
  protected async openNext(): Promise<void> {
    this.current = await this.streams.ask();
    // The client left while it was being opened, and nothing would read it.
    if (this.isCancelled) this.current.cancel();
  }

  async next(): Promise<string | undefined> {
    const { value } = await this.frames.next();
    return value ?? undefined;
  }

  cancel(): void {
    this.isCancelled = true;
    this.current.cancel();
    this.streams.onCancel();
  }
}
