import type { Canvas } from "@napi-rs/canvas";
import sharp from "sharp";

const bmpHeaderBytes = 54;

/** Encodes an uncompressed BMP with 24 bits per pixel, its rows from the bottom up. */
function encodeBmp(canvas: Canvas): Uint8Array {
  const { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const bmp = Buffer.alloc(bmpHeaderBytes + rowBytes * height);
  bmp.write("BM");
  bmp.writeUInt32LE(bmp.length, 2);
  bmp.writeUInt32LE(bmpHeaderBytes, 10);
  bmp.writeUInt32LE(40, 14);
  bmp.writeInt32LE(width, 18);
  bmp.writeInt32LE(height, 22);
  bmp.writeUInt16LE(1, 26);
  bmp.writeUInt16LE(24, 28);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = (y * width + x) * 4;
      const to = bmpHeaderBytes + (height - 1 - y) * rowBytes + x * 3;
      bmp[to] = pixels[from + 2] ?? 0;
      bmp[to + 1] = pixels[from + 1] ?? 0;
      bmp[to + 2] = pixels[from] ?? 0;
    }
  }
  return bmp;
}

/** Encoders of every picture format that the gateway reads. */
export const encodePicture = {
  png: (canvas: Canvas) => canvas.encode("png"),
  jpeg: (canvas: Canvas) => canvas.encode("jpeg", 90),
  webp: (canvas: Canvas) => canvas.encode("webp", 90),
  gif: async (canvas: Canvas) =>
    sharp(await canvas.encode("png"))
      .gif()
      .toBuffer(),
  tiff: async (canvas: Canvas) =>
    sharp(await canvas.encode("png"))
      .flatten()
      .tiff({ compression: "lzw" })
      .toBuffer(),
  bmp: async (canvas: Canvas) => encodeBmp(canvas),
} satisfies Record<string, (canvas: Canvas) => Promise<Uint8Array>>;

/** Names of the picture formats. */
export const pictureFormats = Object.keys(encodePicture) as (keyof typeof encodePicture)[];
