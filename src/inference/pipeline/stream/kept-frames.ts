import type { KeptText } from "../../../insights/archive/content-insert.ts";
import { keptCharactersMax } from "../../../insights/archive/kept-text.ts";

/** The frames of a stream, as far as they are kept. */
export class KeptFrames {
  private text = "";
  private isFull = false;

  /** Adds frames that the client is sent. */
  add(frames: string): void {
    if (this.isFull) return;
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
