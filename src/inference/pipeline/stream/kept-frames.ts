import type { AnswerKeeper } from "../inference-call.ts";
import { type KeptText, TextKeeper } from "../../../platform/kernel/json/text-keeper.ts";

/** The frames of a stream, as far as they are kept. */
export class KeptFrames implements AnswerKeeper {
  readonly isEvents = true;
  private readonly text: TextKeeper;

  /** `fileBytesMax` is how many bytes of the pictures and sound in the frames are kept. */
  constructor(fileBytesMax: number) {
    this.text = new TextKeeper(fileBytesMax);
  }

  /** Adds frames that the client is sent. */
  add(frames: string | Uint8Array): void {
    if (typeof frames === "string") this.text.add(frames);
  }

  /** The text that was kept so far. */
  get kept(): KeptText {
    return this.text.kept;
  }
}
