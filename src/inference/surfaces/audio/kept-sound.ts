import type { AnswerKeeper } from "../../pipeline/inference-call.ts";
import type { KeptText } from "../../../platform/kernel/json/text-keeper.ts";
import { MediaRoom, soundFormatOf } from "../media/media-room.ts";
import { soundTypes } from "./sound-dialect.ts";
import { wavHead } from "./speech-bytes.ts";

/** Keeps the sound of an answer in the form of sound within messages. */
export class KeptSound implements AnswerKeeper {
  readonly isEvents = false;
  private readonly room: MediaRoom;
  private readonly pieces: Uint8Array[] = [];
  private bytes = 0;
  private keptBytes = 0;

  constructor(
    private readonly type: string,
    bytesMax: number,
  ) {
    this.room = new MediaRoom(bytesMax);
  }

  add(piece: string | Uint8Array): void {
    if (typeof piece === "string") return;
    this.bytes += piece.byteLength;
    const taken = this.room.takeBeginning(piece.byteLength);
    if (taken === 0) return;
    this.keptBytes += taken;
    this.pieces.push(Uint8Array.from(piece.subarray(0, taken)));
  }

  get kept(): KeptText {
    const { bytes, keptBytes } = this;
    const { isCut } = this.room;
    // Samples without a header, which only a file with one tells how to play.
    const isRaw = this.type === soundTypes["pcm"];
    const data = Buffer.concat(isRaw ? [wavHead(keptBytes), ...this.pieces] : this.pieces);
    const audio = {
      format: isRaw ? "wav" : soundFormatOf({ type: this.type }),
      bytes,
      ...(isCut && { kept_bytes: keptBytes }),
      ...(keptBytes > 0 && { data: data.toString("base64") }),
    };
    return { text: JSON.stringify({ audio }), isCut };
  }
}
