/** Bounds on what a file may ask for, so that a small file cannot unfold into a large one. */
export interface ConversionLimits {
  /** Pixels of one picture. */
  pixelsMax: number;
  /** Pages of a document whose text is in it. */
  pagesMax: number;
  /** Pages that have to be read as pictures; each takes seconds. */
  scannedPagesMax: number;
  /** Characters of the Markdown. */
  charactersMax: number;
}

/** A message to a converter's child process. */
export interface ConversionTask {
  format: FileFormat;
  bytes: Uint8Array;
  limits: ConversionLimits;
  /** Pages without text of their own come back as pictures, for a provider to read. */
  leavesPictures?: true;
}

/** A page for a provider to read: its own text as Markdown, or a JPEG of it. */
export type PreparedPage = { markdown: string } | { jpeg: Uint8Array };

/** A message from a child process; all but `progress` end its task. */
export type ConversionReport =
  /** A page is done: the child is alive. */
  | { kind: "progress" }
  | { kind: "converted"; markdown: string; pages: number }
  /** At least one page is left to be read; only where the task asks for that. */
  | { kind: "prepared"; pages: PreparedPage[] }
  /** The file is damaged, encrypted or beyond the limits; `message` is for the caller. */
  | { kind: "refused"; message: string }
  /** The converter broke on the file; `message` is for the log. */
  | { kind: "failed"; message: string }
  /** This installation lacks what it takes to convert such files; `message` is for the log. */
  | { kind: "unfit"; message: string };

/**
 * A file that cannot be converted, through no fault of the converter; `message` is for the caller.
 */
export class RefusedFile extends Error {
  override name = "RefusedFile";
}

/** A library or its data that this installation lacks. */
export class MissingPart extends Error {
  override name = "MissingPart";
}

/** What was loaded; throws `MissingPart` when it cannot be. */
export async function loaded<Part>(part: Promise<Part>): Promise<Part> {
  return part.catch((error: unknown) => {
    throw new MissingPart(String(error), { cause: error });
  });
}

/** The files that text is read out of. */
export type FileFormat = "png" | "jpeg" | "gif" | "webp" | "bmp" | "tiff" | "pdf";

const ascii = (bytes: Uint8Array, start: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(start, start + length));

/** PDF readers look for the header in the first 1,024 bytes (ISO 32000-1, annex H.3.4.1). */
const pdfHeaderBytes = 1024;

/**
 * What a file is by its first bytes; its name is not asked. Undefined when it is none of these.
 * Nothing is decoded here.
 */
export function fileFormatOf(bytes: Uint8Array): FileFormat | undefined {
  if (ascii(bytes, 0, 8) === "\x89PNG\r\n\x1a\n") return "png";
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return "jpeg";
  if (/^GIF8[79]a$/.test(ascii(bytes, 0, 6))) return "gif";
  if (ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 4) === "WEBP") return "webp";
  if (/^(?:II[*+]\0|MM\0[*+])$/.test(ascii(bytes, 0, 4))) return "tiff";
  if (ascii(bytes, 0, 2) === "BM" && bytes.byteLength >= 26) return "bmp";
  return ascii(bytes, 0, pdfHeaderBytes).includes("%PDF-") ? "pdf" : undefined;
}
