import { big, latin, little, type HostileFile } from "./hostile-file.ts";

const jpegSegment = (marker: number, data: Uint8Array): Buffer =>
  Buffer.concat([big(1, 0xff, marker), big(2, data.length + 2), data]);
const [startOfImage, endOfImage] = [big(1, 0xff, 0xd8), big(1, 0xff, 0xd9)];
const jpegFrame = (
  height: number,
  width: number,
  { marker = 0xc0, bits = 8, components = 1 } = {},
): Buffer => {
  const each = Array.from({ length: components }, (_, index) => big(1, index + 1, 0x11, 0));
  return jpegSegment(
    marker,
    Buffer.concat([big(1, bits), big(2, height, width), big(1, components), ...each]),
  );
};
const jpegTable = jpegSegment(0xdb, Buffer.concat([big(1, 0), Buffer.alloc(64, 1)]));
const jpegScan = Buffer.concat([jpegSegment(0xda, big(1, 1, 1, 0, 0, 63, 0)), Buffer.alloc(64)]);
const jpeg = (...parts: Uint8Array[]): Buffer =>
  Buffer.concat([startOfImage, ...parts, endOfImage]);

const jpegs: Readonly<Record<string, Uint8Array>> = {
  "the largest sides that its header can say": jpeg(jpegTable, jpegFrame(65_535, 65_535), jpegScan),
  "no height": jpeg(jpegTable, jpegFrame(0, 64), jpegScan),
  "no width": jpeg(jpegTable, jpegFrame(64, 0), jpegScan),
  "no frame": jpeg(jpegTable, jpegScan),
  "no scan": jpeg(jpegTable, jpegFrame(64, 64)),
  "no tables": jpeg(jpegFrame(64, 64), jpegScan),
  "255 components": jpeg(jpegTable, jpegFrame(64, 64, { components: 255 }), jpegScan),
  "no components": jpeg(jpegTable, jpegFrame(64, 64, { components: 0 }), jpegScan),
  "two bits a pixel": jpeg(jpegTable, jpegFrame(64, 64, { bits: 2 }), jpegScan),
  "a frame without losses": jpeg(jpegTable, jpegFrame(64, 64, { marker: 0xc3 }), jpegScan),
  "a segment that ends before it begins": Buffer.concat([
    startOfImage,
    big(1, 0xff, 0xdb, 0, 0),
    endOfImage,
  ]),
  "a segment that is longer than the file": Buffer.concat([
    startOfImage,
    big(1, 0xff, 0xe1, 0xff, 0xff),
    Buffer.alloc(64),
  ]),
  "nothing between its ends": jpeg(),
};

const gifScreen = (width: number, height: number): Buffer =>
  Buffer.concat([latin("GIF89a"), little(2, width, height), little(1, 0, 0, 0)]);
const gifImage = (width: number, height: number): Buffer =>
  Buffer.concat([latin(","), little(2, 0, 0, width, height), little(1, 0)]);
const gifData = Buffer.concat([little(1, 2, 2, 0x4c, 0x01, 0), latin(";")]);

const gifs: Readonly<Record<string, Uint8Array>> = {
  "the largest sides that its header can say": Buffer.concat([
    gifScreen(65_535, 65_535),
    gifImage(65_535, 65_535),
    gifData,
  ]),
  "no sides": Buffer.concat([gifScreen(0, 0), gifImage(0, 0), gifData]),
  "no picture": Buffer.concat([gifScreen(64, 64), latin(";")]),
  "no end": Buffer.concat([gifScreen(64, 64), gifImage(64, 64)]),
  "codes of 200 bits": Buffer.concat([
    gifScreen(64, 64),
    gifImage(64, 64),
    little(1, 200, 2, 0x4c, 0x01, 0),
    latin(";"),
  ]),
  "a block that is longer than the file": Buffer.concat([
    gifScreen(64, 64),
    gifImage(64, 64),
    little(1, 2, 255, 1, 2, 3),
  ]),
  "a comment without an end": Buffer.concat([
    gifScreen(64, 64),
    little(1, 0x21, 0xfe, 255),
    Buffer.alloc(30),
  ]),
  "a block of an unknown kind": Buffer.concat([gifScreen(64, 64), little(1, 0x99, 1, 2, 3)]),
};

interface BmpHeader {
  width?: number;
  height?: number;
  bits?: number;
  compression?: number;
  offset?: number;
  headerBytes?: number;
}

const bmp = ({
  width = 64,
  height = 64,
  bits = 24,
  compression = 0,
  offset = 54,
  headerBytes = 40,
}: BmpHeader): Buffer =>
  Buffer.concat([
    latin("BM"),
    little(4, 300, 0, offset, headerBytes, width >>> 0, height >>> 0),
    little(2, 1, bits),
    little(4, compression, 0, 0, 0, 0, 0),
    Buffer.alloc(246),
  ]);

const bmps: Readonly<Record<string, Uint8Array>> = {
  "ten billion pixels": bmp({ width: 100_000, height: 100_000 }),
  "the largest sides that its header can say": bmp({ width: 2 ** 31 - 1, height: 2 ** 31 - 1 }),
  "the lowest height that its header can say": bmp({ height: -(2 ** 31) }),
  "no width": bmp({ width: 0 }),
  "no height": bmp({ height: 0 }),
  "a width below zero": bmp({ width: -64 }),
  "seven bits a pixel": bmp({ bits: 7 }),
  "a compression that nobody knows": bmp({ compression: 77 }),
  "pixels behind its end": bmp({ offset: 2 ** 32 - 1 }),
  "a header of four gigabytes": bmp({ headerBytes: 2 ** 32 - 1 }),
  "fewer pixels than it promises": bmp({ width: 2_000, height: 2_000 }),
};

const riff = (type: string, data: Uint8Array, size = data.length + 12): Buffer =>
  Buffer.concat([
    latin("RIFF"),
    little(4, size),
    latin("WEBP"),
    latin(type),
    little(4, data.length),
    data,
  ]);

/** The start of a VP8 frame with the largest dimensions that it can declare. */
const largestFrame = Buffer.concat([
  latin("\x30\x01\0\x9d\x01\x2a"),
  little(2, 16_383, 16_383),
  Buffer.alloc(40),
]);

const webps: Readonly<Record<string, Uint8Array>> = {
  "a frame of noughts": riff("VP8 ", Buffer.alloc(64)),
  "the largest sides that a frame can say": riff("VP8 ", largestFrame),
  "a lossless frame without its signature": riff("VP8L", Buffer.alloc(64)),
  "a lossless frame of the largest sides": riff(
    "VP8L",
    Buffer.concat([latin("\x2f\xff\xff\xff\x0f"), Buffer.alloc(40)]),
  ),
  "a canvas of 2 to the 48 pixels": riff(
    "VP8X",
    Buffer.concat([little(4, 0), Buffer.alloc(6, 255)]),
  ),
  "no frame": riff("VP8X", Buffer.alloc(10)),
  "a size of four gigabytes": riff("VP8 ", Buffer.alloc(64), 2 ** 32 - 1),
  "a frame of an unknown kind": riff("VP9 ", Buffer.alloc(64)),
};

const named = (kind: string, files: Readonly<Record<string, Uint8Array>>): HostileFile[] =>
  Object.entries(files).map(([name, bytes]) => ({ name: `a ${kind} with ${name}`, bytes }));

/** Returns JPEGs, GIFs, BMPs and WebPs with a malformed structure. */
export const hostilePictures = (): HostileFile[] => [
  ...named("JPEG", jpegs),
  ...named("GIF", gifs),
  ...named("BMP", bmps),
  ...named("WebP", webps),
  {
    name: "a JPEG with arithmetic coding",
    bytes: jpeg(jpegTable, jpegFrame(64, 64, { marker: 0xc9 }), jpegScan),
    harmless: true,
  },
];
