/**
 * Bounds on what converting a file may take, so that a small file cannot expand into a large one.
 */
export interface ConversionLimits {
  /** The most pixels of one picture. */
  pixelsMax: number;
  /** The most pages of a document that contains text. */
  pagesMax: number;
  /** The most pages that have to be read as pictures, which takes seconds for each. */
  scannedPagesMax: number;
  /** The most characters of the Markdown. */
  charactersMax: number;
}

/** A message to a converter's child process. */
export interface ConversionTask {
  format: FileFormat | "office";
  bytes: Uint8Array;
  limits: ConversionLimits;
  /** Returns pages without text as pictures, for a provider to read. */
  leavesPictures?: true;
}

/** A page for a provider to read: its own text as Markdown, or a JPEG of it. */
export type PreparedPage = { markdown: string } | { jpeg: Uint8Array };

/** A message from a child process. All but `progress` end its task. */
export type ConversionReport =
  /** A page is done, which shows that the child is alive. */
  | { kind: "progress" }
  | { kind: "converted"; markdown: string; pages: number }
  /** At least one page is left to be read. Sent only where the task asks for that. */
  | { kind: "prepared"; pages: PreparedPage[] }
  /** The file is damaged, encrypted or beyond the limits; `message` is for the caller. */
  | { kind: "refused"; message: string }
  /** The converter failed on the file; `message` is for the log. */
  | { kind: "failed"; message: string }
  /** This installation lacks what is needed to convert such files; `message` is for the log. */
  | { kind: "unfit"; message: string };

/**
 * Thrown for a file that cannot be converted, through no fault of the converter; `message` is for
 * the caller.
 */
export class RefusedFileError extends Error {
  override name = "RefusedFileError";
}

/** Thrown where this installation lacks a library or its data. */
export class MissingPartError extends Error {
  override name = "MissingPartError";
}

/** Resolves with a loaded part. Rejects with `MissingPartError` when it cannot be loaded. */
export async function loaded<Part>(part: Promise<Part>): Promise<Part> {
  return part.catch((error: unknown) => {
    throw new MissingPartError(String(error), { cause: error });
  });
}

/** The file formats from which text is read. */
export type FileFormat = "png" | "jpeg" | "gif" | "webp" | "bmp" | "tiff" | "pdf";

const ascii = (bytes: Uint8Array, start: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(start, start + length));

/** The bytes in which PDF readers look for the header (ISO 32000-1, annex H.3.4.1). */
const pdfHeaderBytes = 1024;

/**
 * Returns the format of a file by its first bytes, regardless of its name; undefined when it is
 * none of these. Nothing is decoded here.
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

/** Returns whether bytes begin as a ZIP archive does, which office files are. */
export const isArchive = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
