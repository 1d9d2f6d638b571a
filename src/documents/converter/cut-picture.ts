import type { FileFormat } from "./file-format.ts";

/**
 * Whether a picture ends before its pixels do, where decoders would fill up what is missing with grey: a page whose lower
 * half is missing reads as a page that says less. Other formats than these are refused by their decoders.
 */
export function isCut(format: FileFormat, bytes: Uint8Array): boolean {
  if (format === "jpeg") return isCutJpeg(bytes);
  return format === "gif" && isCutGif(bytes);
}

const [startOfScan, endOfImage] = [0xda, 0xd9];

/** Markers without a segment: restarts, the picture's beginning, and a byte kept for old coders (ITU-T T.81, B.1.1.3). */
const standsAlone = (marker: number): boolean =>
  (marker >= 0xd0 && marker <= 0xd8) || marker === 0x01;

/** A JPEG is whole when its end is marked; thumbnails in its segments have ends of their own, so they are leapt over. */
function isCutJpeg(bytes: Uint8Array): boolean {
  let at = 2;
  while (at + 1 < bytes.length) {
    const marker = bytes[at] === 0xff ? (bytes[at + 1] ?? 0) : 0;
    if (marker === endOfImage) return false;
    if (marker === 0xff || marker === 0) {
      // A fill byte, a byte of a scan, or something that belongs to nothing.
      at += 1;
    } else if (standsAlone(marker)) {
      at += 2;
    } else {
      at += 2 + lengthAt(bytes, at + 2);
      if (marker === startOfScan) at = bytes.indexOf(0xff, at);
      if (at < 0) return true;
    }
  }
  return true;
}

const lengthAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);

const [imageSeparator, extensionIntroducer] = [0x2c, 0x21];

/** Bytes of a colour table, by the flags that say whether there is one. */
const tableBytes = (flags: number): number =>
  (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);

/** Where a chain of blocks ends (GIF89a, 15); beyond the bytes where it does not. */
function endOfBlocks(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length) {
    const length = bytes[at] ?? 0;
    at += 1 + length;
    if (length === 0) return at;
  }
  return bytes.length + 1;
}

/** A GIF is whole when the blocks of its first picture end; what follows is not read. */
function isCutGif(bytes: Uint8Array): boolean {
  let at = 13 + tableBytes(bytes[10] ?? 0);
  while (at < bytes.length) {
    const kind = bytes[at];
    if (kind === imageSeparator)
      return endOfBlocks(bytes, at + 11 + tableBytes(bytes[at + 9] ?? 0)) > bytes.length;
    if (kind !== extensionIntroducer) return true;
    at = endOfBlocks(bytes, at + 2);
  }
  return true;
}
