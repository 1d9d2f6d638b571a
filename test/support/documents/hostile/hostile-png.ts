import { crc32, deflateSync } from "node:zlib";
import { big, latin, type HostileFile } from "./hostile-file.ts";

const signature = latin("\x89PNG\r\n\x1a\n");

/** Encodes a chunk with its length and its checksum (PNG, 5.3). */
function chunk(type: string, data: Uint8Array, { crc }: { crc?: number } = {}): Buffer {
  const body = Buffer.concat([latin(type), data]);
  return Buffer.concat([big(4, data.byteLength), body, big(4, crc ?? crc32(body))]);
}

interface Header {
  width?: number;
  height?: number;
  depth?: number;
  colour?: number;
  interlace?: number;
}

const header = ({
  width = 64,
  height = 64,
  depth = 8,
  colour = 0,
  interlace = 0,
}: Header = {}): Buffer =>
  chunk("IHDR", Buffer.concat([big(4, width, height), big(1, depth, colour, 0, 0, interlace)]));

const rows = deflateSync(Buffer.alloc(65 * 64));
const pixels = chunk("IDAT", rows);
const end = chunk("IEND", new Uint8Array());

const png = (...chunks: Uint8Array[]): Buffer => Buffer.concat([signature, ...chunks]);

/** Returns a PNG of one colour that has few bytes and many pixels. */
export function pngBomb(side: number): Uint8Array {
  const packed = deflateSync(Buffer.alloc((Math.ceil(side / 8) + 1) * side));
  return png(header({ width: side, height: side, depth: 1 }), chunk("IDAT", packed), end);
}

/** Returns PNGs with a malformed structure. */
export function hostilePngs(): HostileFile[] {
  const files: Record<string, Uint8Array> = {
    "400 million pixels in a few kilobytes": pngBomb(20_000),
    "ten billion pixels in its header": png(
      header({ width: 100_000, height: 100_000 }),
      pixels,
      end,
    ),
    "the largest sides that its header can say": png(
      header({ width: 2 ** 31 - 1, height: 2 ** 31 - 1 }),
      pixels,
      end,
    ),
    "sides beyond what its header can say": png(
      header({ width: 2 ** 32 - 1, height: 2 ** 32 - 1 }),
      pixels,
      end,
    ),
    "one row that is endless": png(header({ width: 2 ** 31 - 1, height: 1 }), pixels, end),
    "one column that is endless": png(header({ width: 1, height: 2 ** 31 - 1 }), pixels, end),
    "no width": png(header({ width: 0 }), pixels, end),
    "no height": png(header({ height: 0 }), pixels, end),
    "three bits a pixel": png(header({ depth: 3 }), pixels, end),
    "a colour type that nobody knows": png(header({ colour: 5 }), pixels, end),
    "an interlacing that nobody knows": png(header({ interlace: 9 }), pixels, end),
    "a palette that is missing": png(header({ colour: 3 }), pixels, end),
    "no header": png(pixels, end),
    "no pixels": png(header(), end),
    "nothing but its header": png(header()),
    "pixels that are not compressed": png(header(), chunk("IDAT", Buffer.alloc(4_160)), end),
    "fewer pixels than it promises": png(header({ width: 4_000, height: 4_000 }), pixels, end),
    "a chunk of four gigabytes": png(header(), big(4, 2 ** 32 - 1), latin("IDAT"), rows),
    "an unknown chunk that is needed": png(header(), chunk("ABCD", Buffer.alloc(8)), end),
  };
  const fields = Buffer.concat([big(4, 64, 64), big(1, 8, 0, 0, 0, 0)]);
  const wrongSum = png(chunk("IHDR", fields, { crc: 1 }), pixels, end);
  return [
    ...Object.entries(files).map(
      ([name, bytes]): HostileFile => ({ name: `a PNG with ${name}`, bytes }),
    ),
    { name: "a PNG with a header of a wrong checksum", bytes: wrongSum, harmless: true },
  ];
}
