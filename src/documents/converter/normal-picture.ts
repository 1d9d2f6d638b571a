import {
  loaded,
  RefusedFileError,
  type ConversionLimits,
  type FileFormat,
} from "./converter-messages.ts";

/**
 * The most pixels that improve recognition, which takes time for each; A4 at 300 dpi has 8.7
 * million.
 */
const usefulPixels = 10_000_000;

/** PNGs live for a moment, so writing them fast matters more than their size. */
const png = { compressionLevel: 1 };

/**
 * Returns a picture as PNGs, one for each of its pages: of a useful size, upright, and without
 * transparency. Throws `RefusedFileError`.
 */
export async function normalPictures(
  format: FileFormat,
  bytes: Uint8Array,
  limits: ConversionLimits,
): Promise<Uint8Array[]> {
  if (isCut(format, bytes)) throw new RefusedFileError("The picture is cut: its end is missing.");
  return format === "tiff"
    ? tiffPages(bytes, limits)
    : [await onWhite(await normalPicture(bytes, limits))];
}

async function normalPicture(
  bytes: Uint8Array,
  { pixelsMax }: ConversionLimits,
): Promise<Uint8Array> {
  try {
    const picture = new Bun.Image(bytes, { maxPixels: pixelsMax });
    const { width, height } = await picture.metadata();
    const scale = scaleOf(width, height);
    if (scale < 1) picture.resize(Math.ceil(width * scale), Math.ceil(height * scale));
    return await picture.png(png).bytes();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    throw new RefusedFileError(
      code === "ERR_IMAGE_TOO_MANY_PIXELS" ? tooManyPixels(pixelsMax) : damaged,
      { cause: error },
    );
  }
}

const damaged = "The picture is damaged.";
const tooManyPixels = (pixelsMax: number): string =>
  `The picture has more than ${pixelsMax} pixels.`;

const scaleOf = (width: number, height: number): number =>
  Math.min(1, Math.sqrt(usefulPixels / (width * height)));

/** Puts a picture on white, since Tesseract would take transparency for black. */
async function onWhite(bytes: Uint8Array): Promise<Uint8Array> {
  const colourType = bytes[25];
  if (colourType !== 4 && colourType !== 6) return bytes;
  const { sharp } = await loadSharp();
  return sharp(bytes).flatten({ background: "#ffffff" }).png(png).toBuffer();
}

/** Loads Sharp, which reads TIFF, which Bun does not, and puts on white what Bun has decoded. */
async function loadSharp() {
  const { default: sharp } = await loaded(import("sharp"));
  sharp.concurrency(1);
  sharp.cache(false);
  return { sharp };
}

async function tiffPages(
  bytes: Uint8Array,
  { pixelsMax, scannedPagesMax }: ConversionLimits,
): Promise<Uint8Array[]> {
  const { sharp } = await loadSharp();
  const options = { limitInputPixels: pixelsMax, failOn: "error" as const, sequentialRead: true };
  try {
    const { pages = 1 } = await sharp(bytes, options).metadata();
    if (pages > scannedPagesMax)
      throw new RefusedFileError(
        `The file has ${pages} pages; at most ${scannedPagesMax} can be read.`,
      );
    const pictures: Uint8Array[] = [];
    for (let page = 0; page < pages; page += 1) {
      const { data, info } = await sharp(bytes, { ...options, page })
        .autoOrient()
        .flatten({ background: "#ffffff" })
        .toColourspace("srgb")
        .png(png)
        .toBuffer({ resolveWithObject: true });
      const scale = scaleOf(info.width, info.height);
      pictures.push(
        scale === 1
          ? data
          : await sharp(data)
              .resize(Math.ceil(info.width * scale))
              .png(png)
              .toBuffer(),
      );
    }
    return pictures;
  } catch (error) {
    if (error instanceof RefusedFileError) throw error;
    throw new RefusedFileError(
      /pixel limit/i.test(String(error)) ? tooManyPixels(pixelsMax) : damaged,
      {
        cause: error,
      },
    );
  }
}

/**
 * Returns whether a picture's data ends early. Decoders fill missing pixels with grey, so a page
 * whose lower half is missing would be read as a page that says less. Decoders refuse such files in
 * formats other than these.
 */
export function isCut(format: FileFormat, bytes: Uint8Array): boolean {
  if (format === "jpeg") return isCutJpeg(bytes);
  return format === "gif" && isCutGif(bytes);
}

const [startOfScan, endOfImage] = [0xda, 0xd9];

/**
 * Returns whether a marker has no segment: restarts, the start of the picture, and a byte kept for
 * old coders (ITU-T T.81, B.1.1.3).
 */
const standsAlone = (marker: number): boolean =>
  (marker >= 0xd0 && marker <= 0xd8) || marker === 0x01;

/**
 * Returns whether a JPEG lacks its end marker. Segments are skipped, since thumbnails in them have
 * end markers of their own.
 */
function isCutJpeg(bytes: Uint8Array): boolean {
  let at = 2;
  while (at + 1 < bytes.length) {
    const marker = bytes[at] === 0xff ? (bytes[at + 1] ?? 0) : 0;
    if (marker === endOfImage) return false;
    if (marker === 0xff || marker === 0) {
      // A fill byte, a byte of a scan, or stray data.
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

/** Returns the bytes of a colour table, by the flags that say whether there is one. */
const tableBytes = (flags: number): number =>
  (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);

/** Returns where a chain of blocks ends (GIF89a, 15); beyond the data where it does not. */
function endOfBlocks(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length) {
    const length = bytes[at] ?? 0;
    at += 1 + length;
    if (length === 0) return at;
  }
  return bytes.length + 1;
}

/** Returns whether the blocks of a GIF's first picture end early. Later pictures are not read. */
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
