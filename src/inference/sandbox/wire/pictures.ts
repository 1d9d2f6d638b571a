import { deflateSync, crc32 } from "node:zlib";

/** The sides of the sandbox's pictures in pixels at most, where a larger size is asked for. */
const sideMax = 512;
const cells = 8;

/** Returns a PNG of a pattern that depends on the text alone. The text is in the file's metadata. */
export function patternPng(text: string, size: readonly [number, number] = [256, 256]): Uint8Array {
  const [width, height] = size.map((side) => Math.min(sideMax, Math.max(cells, side))) as [
    number,
    number,
  ];
  const hash = new Bun.CryptoHasher("sha256").update(text).digest();
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0; y < height; y += 1) {
    const start = y * (1 + width * 3) + 1;
    for (let x = 0; x < width; x += 1) {
      const column = Math.floor((x * cells) / width);
      const row = Math.floor((y * cells) / height);
      // Mirrored, so that it looks like a picture.
      const cell = Math.min(column, cells - 1 - column) + row * (cells / 2);
      const byte = hash[cell % hash.length] ?? 0;
      const isOn = (byte & 1) === 1;
      for (let channel = 0; channel < 3; channel += 1)
        rows[start + x * 3 + channel] = isOn ? (hash[channel] ?? 0) : 240;
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", head),
    chunk("iTXt", Buffer.from(`Description\0\0\0\0\0${text.slice(0, 1_000)}`)),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Returns a chunk of a PNG (W3C PNG, 5.3). */
function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** Samples of sound in a second, in 16 bits each. */
export const sampleRate = 24_000;

/** Returns PCM of a tone for each character of a text: 50 ms each, at a pitch that it chooses. */
export function tonePcm(text: string): Uint8Array {
  const perCharacter = sampleRate / 20;
  const characters = [...text].slice(0, 400);
  const samples = Buffer.alloc(characters.length * perCharacter * 2);
  characters.forEach((character, index) => {
    const hertz = /\s/.test(character) ? 0 : 220 + ((character.codePointAt(0) ?? 0) % 40) * 11;
    for (let at = 0; at < perCharacter; at += 1) {
      const value = Math.sin((2 * Math.PI * hertz * at) / sampleRate) * 8_000;
      samples.writeInt16LE(Math.round(value), (index * perCharacter + at) * 2);
    }
  });
  return samples;
}
