/** The files that text is read out of. */
export type FileFormat = "png" | "jpeg" | "gif" | "webp" | "bmp" | "tiff" | "pdf";

const ascii = (bytes: Uint8Array, start: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(start, start + length));

/** PDF readers look for the header in the first 1,024 bytes (ISO 32000-1, annex H.3.4.1). */
const pdfHeaderBytes = 1024;

/**
 * What a file is by its first bytes; its name is not asked. Undefined when it is none of these. Nothing
 * is decoded here.
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
