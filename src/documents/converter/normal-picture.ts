import type { ConversionLimits } from "./converter-messages.ts";
import type { FileFormat } from "./file-format.ts";
import { loaded, RefusedFile } from "./conversion-error.ts";
import { isCut } from "./cut-picture.ts";

/** Recognition gains nothing from more pixels, and takes time for each: A4 at 300 dpi has 8.7 million. */
const usefulPixels = 10_000_000;

/** PNGs live for a moment: writing them fast is worth more than writing them small. */
const png = { compressionLevel: 1 };

/** A picture as PNGs, one for each of its pages: of a useful size, upright, and without transparency. Throws `RefusedFile`. */
export async function normalPictures(
  format: FileFormat,
  bytes: Uint8Array,
  limits: ConversionLimits,
): Promise<Uint8Array[]> {
  if (isCut(format, bytes)) throw new RefusedFile("The picture is cut: its end is missing.");
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
    throw new RefusedFile(
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

/** What is transparent becomes white, as on paper: Tesseract would take it for black. */
async function onWhite(bytes: Uint8Array): Promise<Uint8Array> {
  const colourType = bytes[25];
  if (colourType !== 4 && colourType !== 6) return bytes;
  const { sharp } = await loadSharp();
  return sharp(bytes).flatten({ background: "#ffffff" }).png(png).toBuffer();
}

/** Sharp reads what Bun does not: TIFF. It also lays upon white what Bun has decoded. */
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
      throw new RefusedFile(`The file has ${pages} pages; at most ${scannedPagesMax} can be read.`);
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
    if (error instanceof RefusedFile) throw error;
    throw new RefusedFile(/pixel limit/i.test(String(error)) ? tooManyPixels(pixelsMax) : damaged, {
      cause: error,
    });
  }
}
