import { keptCharactersMax, type AnswerKeeper, type KeptText } from "../keep-content.ts";

/** The frames of a stream, as far as they are kept. */
export class KeptFrames implements AnswerKeeper {
  readonly isEvents = true;
  private text = "";
  private isFull = false;

  /** Adds frames that the client is sent. */
  add(frames: string | Uint8Array): void {
    if (this.isFull || typeof frames !== "string") return;
    this.isFull = this.text.length + frames.length > keptCharactersMax;
    this.text = this.isFull
      ? this.text + frames.slice(0, keptCharactersMax - this.text.length).toWellFormed()
      : this.text + frames;
  }

  /** The text that was kept so far. */
  get kept(): KeptText {
    return { text: this.text, isCut: this.isFull };
  }
}
