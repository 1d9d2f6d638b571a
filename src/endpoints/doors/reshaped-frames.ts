import type { FrameSource } from "../../platform/kernel/frame-source.ts";

/** Turns the chunks of a chat stream into the frames of another form. One serves one stream. */
interface ChunkShaper {
  /** Returns the text for a chunk; an empty one where nothing is sent for it. */
  chunk(fields: Readonly<Record<string, unknown>>): string;
  /** Returns the text that ends the stream after `[DONE]`. */
  done(): string;
  /** The sign of life; empty where clients of the form bear none. */
  readonly pingFrame: string;
}

/** A chat stream in another form, for clients that speak neither chat nor another dialect. */
export class ReshapedFrames implements FrameSource {
  constructor(
    private readonly source: FrameSource,
    private readonly shaper: ChunkShaper,
  ) {}

  /** Returns the next frames; a piece that means nothing in this form is skipped. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const frames = await this.source.next();
      if (frames === undefined) return undefined;
      const text = this.shaped(frames);
      if (text !== "") return text;
    }
  }

  get isOver(): boolean {
    return this.source.isOver === true;
  }

  cancel(): void {
    this.source.cancel();
  }

  private shaped(frames: string): string {
    let text = "";
    for (const line of frames.split("\n")) {
      if (line.startsWith(":")) text += this.shaper.pingFrame;
      if (!line.startsWith("data: ")) continue;
      const data = line.slice("data: ".length);
      text += data === "[DONE]" ? this.shaper.done() : this.shaper.chunk(JSON.parse(data));
    }
    return text;
  }
}
