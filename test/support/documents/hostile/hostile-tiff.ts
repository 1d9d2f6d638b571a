import { latin, little, type HostileFile } from "./hostile-file.ts";

/** Tags of a directory (TIFF 6.0, section 8) that the hostile files change. */
const tags = {
  width: 256,
  height: 257,
  bits: 258,
  compression: 259,
  photometric: 262,
  strip: 273,
  samples: 277,
  rowsPerStrip: 278,
  stripBytes: 279,
} as const;

type Fields = Partial<Record<keyof typeof tags, number>>;

const sound: Fields = {
  width: 64,
  height: 64,
  bits: 8,
  compression: 1,
  photometric: 1,
  strip: 8,
  samples: 1,
  rowsPerStrip: 64,
  stripBytes: 4_096,
};

const headerBytes = 8;
const pixelBytes = 4_096;
const directoryAt = headerBytes + pixelBytes;

/** Encodes a directory of 32-bit fields and the offset of the next directory. */
function directory(fields: Fields, next: number, count = Object.keys(fields).length): Buffer {
  const entries = Object.entries(fields).map(([name, value]) =>
    Buffer.concat([little(2, tags[name as keyof typeof tags], 4), little(4, 1, value)]),
  );
  return Buffer.concat([little(2, count), ...entries, little(4, next)]);
}

const tiff = (first: number, ...parts: Uint8Array[]): Buffer =>
  Buffer.concat([latin("II*\0"), little(4, first), Buffer.alloc(pixelBytes), ...parts]);

const withFields = (changes: Fields): Buffer =>
  tiff(directoryAt, directory({ ...sound, ...changes }, 0));

function without(name: keyof Fields): Buffer {
  const { [name]: _, ...rest } = sound;
  return tiff(directoryAt, directory(rest, 0));
}

/** Returns a file of consecutive directories, like the pages of a scan. */
function pages(count: number): Buffer {
  const bytes = directory(sound, 0).length;
  const at = (index: number): number => directoryAt + index * bytes;
  return tiff(
    directoryAt,
    ...Array.from({ length: count }, (_, index) =>
      directory(sound, index + 1 < count ? at(index + 1) : 0),
    ),
  );
}

/** Returns TIFFs with malformed directories. */
export function hostileTiffs(): HostileFile[] {
  const files: Record<string, Uint8Array> = {
    "a directory behind its end": tiff(2 ** 32 - 1),
    "a directory in its header": tiff(0),
    "a directory without fields": tiff(directoryAt, directory({}, 0)),
    "a directory of 65,535 fields": tiff(directoryAt, directory(sound, 0, 65_535)),
    "a directory that is cut": tiff(directoryAt, directory(sound, 0).subarray(0, 20)),
    "31 pages": pages(31),
    "1,000 pages": pages(1_000),
    "ten billion pixels": withFields({ width: 100_000, height: 100_000 }),
    "the largest sides that its fields can say": withFields({
      width: 2 ** 32 - 1,
      height: 2 ** 32 - 1,
    }),
    "no width": withFields({ width: 0 }),
    "no height": withFields({ height: 0 }),
    "no field for its width": without("width"),
    "no strip": without("strip"),
    "a strip behind its end": withFields({ strip: 2 ** 32 - 1 }),
    "a compression that nobody knows": withFields({ compression: 54_321 }),
    "pixels that are not compressed as it says": withFields({ compression: 7 }),
    "65,535 samples a pixel": withFields({ samples: 65_535 }),
    "200 bits a sample": withFields({ bits: 200 }),
    "a strip that is shorter than its rows": withFields({
      width: 2_000,
      height: 2_000,
      rowsPerStrip: 2_000,
    }),
  };
  const harmless: Record<string, Uint8Array> = {
    "a directory that follows itself": tiff(directoryAt, directory(sound, directoryAt)),
    "a strip of four gigabytes": withFields({ stripBytes: 2 ** 32 - 1 }),
  };
  return [
    ...Object.entries(files).map(
      ([name, bytes]): HostileFile => ({ name: `a TIFF with ${name}`, bytes }),
    ),
    ...Object.entries(harmless).map(
      ([name, bytes]): HostileFile => ({ name: `a TIFF with ${name}`, bytes, harmless: true }),
    ),
  ];
}
