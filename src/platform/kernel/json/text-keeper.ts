/** The most characters that are kept of a request, and of an answer, beside their files. */
export const keptCharactersMax = 256 * 1024;

/** The fewest characters of base64 that count as a file; less is kept as text. */
const fileCharactersMin = 2_048;

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

/** Matches what is no base64. Some writers of JSON escape slashes and plus signs. */
const otherThanBase64 = /[^\w+/\\=-]/;
/** The most characters of a data URL before its base64, and of a member before its value. */
const headCharactersMax = 200;

/** A string of JSON that is base64 or a data URL. */
interface FileString {
  member: string;
  /** The media type of a data URL; undefined for base64 alone. */
  type: string | undefined;
  base64: string;
  /** The index after it. Within a string of JSON, a backslash stands between it and its quote. */
  end: number;
}

const backslash = 0x5c;

/** Reads a string of JSON as a file; undefined where it is none. */
function fileIn(text: string, { from, to }: { from: number; to: number }): FileString | undefined {
  const head = text.slice(from, from + headCharactersMax);
  const [url = "", type] = /^data:([^,;]+)[^,]*,/.exec(head) ?? [];
  let end = to;
  while (end > from && text.charCodeAt(end - 1) === backslash) end -= 1;
  const base64 = text.slice(from + url.length, end);
  if (base64.length < fileCharactersMin || otherThanBase64.test(base64)) return undefined;
  const before = text.slice(Math.max(0, from - headCharactersMax), from);
  const [, member = ""] = /"(\w+)"\s*:\s*"$/.exec(before) ?? [];
  return { member, type, base64, end };
}

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
    for (let at = text.indexOf('"'); at >= 0; ) {
      const end = text.indexOf('"', at + 1);
      // Nothing is kept behind the place where the text is cut.
      if (end < 0 || at + 1 - from > this.charactersLeft) break;
      const file =
        end - at > fileCharactersMin ? fileIn(text, { from: at + 1, to: end }) : undefined;
      if (file !== undefined) {
        this.addText(text.slice(from, at + 1));
        this.addFile(text.slice(at + 1, file.end), file);
        from = file.end;
      }
      at = end;
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

  private addFile(value: string, { member, type, base64 }: FileString): void {
    const bytes = Buffer.byteLength(base64, "base64");
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

/** A text, as far as it is kept. */
export interface KeptText {
  text: string;
  /** Whether the text was longer. */
  isCut: boolean;
}
