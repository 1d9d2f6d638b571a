import type { KeptText } from "./content-insert.ts";

/** The most characters that are kept of a request, and of an answer, beside their files. */
export const keptCharactersMax = 256 * 1024;

/** The fewest characters of base64 that count as a file; less is kept as text. */
const fileCharactersMin = 2_048;

/**
 * Matches a string of JSON that is base64 or a data URL, with the name of its member. Some writers
 * escape slashes and plus signs.
 */
const fileString =
  /((?:"(\w+)"\s*:\s*)?")((?:data:([\w.+/\\-]{1,100})[^"\\,]{0,100},)?([\w+/\\-]{2048,}={0,2}))"/g;

/** Members with a picture that another one in the same answer replaces. */
const replacedMembers: ReadonlySet<string> = new Set(["partial_image_b64"]);

/** The media types of base64 by its first characters. */
const typesByHead: readonly (readonly [head: string, type: string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["JVBERi", "application/pdf"],
  ["SUQz", "audio/mpeg"],
  ["T2dnUw", "audio/ogg"],
];

const typeOfBase64 = (base64: string): string =>
  typesByHead.find(([head]) => base64.startsWith(head))?.[1] ?? "file";

/**
 * Keeps the text of a request or of an answer, piece by piece: its own characters up to a bound, and
 * the base64 of its files up to another. A file is kept whole, or named with its size in its place.
 */
export class TextKeeper {
  private text = "";
  private charactersLeft = keptCharactersMax;
  private bytesLeft: number;
  private isCut = false;
  private isFull = false;

  constructor(fileBytesMax: number) {
    this.bytesLeft = fileBytesMax;
  }

  /** Adds a piece, in which no string of JSON begins or ends outside of it. */
  add(text: string): void {
    if (text.length < fileCharactersMin) return this.addText(text);
    let from = 0;
    for (const match of text.matchAll(fileString)) {
      const [, lead = "", member = "", value = "", type, base64 = ""] = match;
      const begin = match.index + lead.length;
      this.addText(text.slice(from, begin));
      if (this.isFull) return;
      this.addFile(value, { member, type, base64 });
      from = begin + value.length;
    }
    this.addText(text.slice(from));
  }

  /** What was kept so far. */
  get kept(): KeptText {
    return { text: this.text, isCut: this.isCut };
  }

  private addText(text: string): void {
    if (this.isFull) return;
    this.isFull = text.length > this.charactersLeft;
    this.isCut ||= this.isFull;
    this.text += this.isFull ? text.slice(0, this.charactersLeft).toWellFormed() : text;
    this.charactersLeft -= text.length;
  }

  private addFile(
    value: string,
    { member, type, base64 }: { member: string; type: string | undefined; base64: string },
  ): void {
    const bytes = Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
    const isKept = bytes <= this.bytesLeft && !replacedMembers.has(member);
    if (isKept) this.bytesLeft -= bytes;
    else this.isCut = true;
    const name = type?.replaceAll("\\", "") ?? typeOfBase64(base64);
    this.text += isKept ? value : `[${name} of ${bytes} bytes, not kept]`;
  }
}

/**
 * Returns a text as far as it is kept: its beginning, cut between whole characters, with the files
 * in it up to a number of bytes.
 */
export function keptText(text: string, fileBytesMax = 0): KeptText {
  if (text.length <= keptCharactersMax) return { text, isCut: false };
  const keeper = new TextKeeper(fileBytesMax);
  keeper.add(text);
  return keeper.kept;
}
