import type { StoredContent } from "../../../platform/spool/spool.ts";
import {
  keptCharactersMax,
  keptText,
  type KeptText,
} from "../../../platform/kernel/json/text-keeper.ts";
import type { Fields } from "../read-fields.ts";
import type { Upload } from "./uploads.ts";

/** A file of a request that is kept. */
export type KeptFile = Omit<Upload, "field">;

/** The room for the bytes of pictures and sound that are kept of one request, or of one answer. */
export class MediaRoom {
  /** Whether anything did not fit. */
  isCut = false;
  private bytesLeft: number;

  constructor(bytesMax: number) {
    this.bytesLeft = bytesMax;
  }

  /** Takes room for a picture, whose beginning alone cannot be shown. Returns whether it fits. */
  takeWhole(bytes: number): boolean {
    const fits = bytes <= this.bytesLeft;
    if (fits) this.bytesLeft -= bytes;
    else this.isCut = true;
    return fits;
  }

  /** Takes room for a sound, whose beginning can be played. Returns how many bytes of it fit. */
  takeBeginning(bytes: number): number {
    const taken = Math.min(bytes, this.bytesLeft);
    if (taken < bytes) this.isCut = true;
    this.bytesLeft -= taken;
    return taken;
  }

  /** Reads as much of a sound of a request as fits, as JSON names it. */
  async readSound({ filename, type, content }: KeptFile): Promise<Fields> {
    const bytes = content.size;
    const taken = this.takeBeginning(bytes);
    return {
      format: soundFormatOf({ filename, type }),
      filename,
      bytes,
      ...(taken < bytes && { kept_bytes: taken }),
      ...(taken > 0 && { data: await base64Of(content, taken) }),
    };
  }

  /** Returns a request as JSON: its members, and its files as they were read within this room. */
  textOf(members: Fields, files: Fields): KeptText {
    const text = JSON.stringify(members);
    if (text.length > keptCharactersMax) return keptText(text);
    return { text: JSON.stringify({ ...members, ...files }), isCut: this.isCut };
  }
}

/** Reads the first bytes of a content as base64. */
export async function base64Of(content: StoredContent, length: number): Promise<string> {
  const bytes = await content.read(0, length);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Names of formats that stand for others in media types and in names of files. */
const soundFormats: Readonly<Record<string, string>> = {
  mpeg: "mp3",
  mpga: "mp3",
  m4a: "mp4",
  wave: "wav",
  oga: "ogg",
};

/** Returns the format of a sound as messages name it: by its media type, or by its name. */
export function soundFormatOf({
  filename = "",
  type,
}: {
  filename?: string;
  type?: string | undefined;
}): string {
  const [, subtype] = /^(?:audio|video)\/(?:x-)?([\w.+-]+)/i.exec(type ?? "") ?? [];
  const [, ending] = /\.([a-z0-9]{1,5})$/i.exec(filename) ?? [];
  const format = (subtype ?? ending ?? "wav").toLowerCase();
  return soundFormats[format] ?? format;
}
