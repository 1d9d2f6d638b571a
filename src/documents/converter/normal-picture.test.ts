import { describe, expect, test } from "bun:test";
import sharp from "sharp";
import { isCut } from "./normal-picture.ts";

const noise = { type: "gaussian", mean: 128, sigma: 60 } as const;
const picture = sharp({
  create: { width: 97, height: 61, channels: 3, background: "#fff", noise },
});

/** JPEGs of several kinds, and a GIF. */
const files: Record<string, { format: "jpeg" | "gif"; bytes: Uint8Array }> = {
  "a plain JPEG": { format: "jpeg", bytes: await picture.clone().jpeg().toBuffer() },
  "a progressive JPEG": {
    format: "jpeg",
    bytes: await picture.clone().jpeg({ progressive: true }).toBuffer(),
  },
  "a JPEG with a thumbnail in its head": {
    format: "jpeg",
    bytes: withSegment(await picture.clone().jpeg().toBuffer()),
  },
  "a JPEG with bytes behind it": {
    format: "jpeg",
    bytes: Buffer.concat([await picture.clone().jpeg().toBuffer(), Buffer.alloc(99)]),
  },
  "a GIF": { format: "gif", bytes: await picture.clone().gif().toBuffer() },
};

/** A JPEG with another one in its first segment, as cameras write thumbnails. */
function withSegment(jpeg: Buffer): Buffer {
  const inner = Buffer.from([0xff, 0xd8, 0xff, 0xd9]);
  return Buffer.concat([
    jpeg.subarray(0, 2),
    Buffer.from([0xff, 0xe1, 0, inner.length + 2]),
    inner,
    jpeg.subarray(2),
  ]);
}

describe.each(Object.entries(files))("%s", (name, { format, bytes }) => {
  test("is complete", () => expect(isCut(format, bytes)).toBe(false));

  test("is truncated at any length within its image data", () => {
    const tail = name.includes("behind") ? 101 : 2;
    for (let length = 20; length <= bytes.length - tail; length += 7) {
      expect([length, isCut(format, bytes.slice(0, length))]).toEqual([length, true]);
    }
  });
});

test("a GIF without its last byte is complete, as its image data has ended", () => {
  const { bytes } = files["a GIF"] as { bytes: Uint8Array };
  expect(isCut("gif", bytes.slice(0, -1))).toBe(false);
});

test("formats with decoders that detect truncation are not checked", () => {
  expect(
    ["png", "webp", "bmp", "tiff", "pdf"].some((format) =>
      isCut(format as "png", new Uint8Array(9)),
    ),
  ).toBe(false);
});
