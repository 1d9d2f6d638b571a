import { expect, test } from "bun:test";
import { inMemory } from "../media/uploads.ts";
import { soundLength } from "./sound-length.ts";

const lengthOf = (bytes: Buffer, filename = "sound", type?: string) =>
  soundLength(inMemory(bytes), { filename, type });

/** Returns a chunk of a RIFF file whose header may tell another length. */
function chunk(name: string, body: Buffer, told = body.length): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, "latin1");
  head.writeUInt32LE(told, 4);
  return Buffer.concat([head, body]);
}

/** Returns a WAV of so many seconds in 16 kHz and 16 bits, with chunks before its samples. */
function wav(
  seconds: number,
  { before = Buffer.alloc(0), told = seconds }: { before?: Buffer; told?: number } = {},
): Buffer {
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(16_000, 4);
  format.writeUInt32LE(32_000, 8);
  format.writeUInt16LE(2, 12);
  format.writeUInt16LE(16, 14);
  const samples = chunk("data", Buffer.alloc(seconds * 32_000), told * 32_000);
  const body = Buffer.concat([chunk("fmt ", format), before, samples]);
  return chunk("RIFF", Buffer.concat([Buffer.from("WAVE"), body]));
}

test.each([
  ["as its bytes are", {}],
  ["behind a chunk of 8 KB of an editor", { before: chunk("JUNK", Buffer.alloc(8_192)) }],
  [
    "behind it, where the header tells a second",
    { before: chunk("iXML", Buffer.alloc(8_192)), told: 1 },
  ],
  ["where the header tells ten hours", { told: 36_000 }],
])("a WAV is as long as its samples: %s", async (_, options) => {
  expect(await lengthOf(wav(30, options))).toMatchObject({ heldMs: 30_000, mostMs: 30_000 });
});

/** Returns a frame of an MP3 in 44.1 kHz; its length follows from the bit rate. */
function frame(kbits: number, index?: { name: string; frames: number }): Buffer {
  const rates = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
  const bytes = Buffer.alloc(Math.floor((144 * kbits * 1_000) / 44_100), 0x55);
  bytes.writeUInt32BE(0xfffb0000 + (rates.indexOf(kbits) << 12), 0);
  if (index !== undefined) {
    bytes.fill(0, 4);
    bytes.write(index.name, 36, "latin1");
    bytes.writeUInt32BE(1, 40);
    bytes.writeUInt32BE(index.frames, 44);
  }
  return bytes;
}
const frames = (count: number, kbits: (index: number) => number): Buffer[] =>
  Array.from({ length: count }, (_, index) => frame(kbits(index)));
const secondsOf = (count: number): number => (count * 1_152) / 44_100;

/** Returns a tag of so many bytes before the sound. */
function tag(bytes: number): Buffer {
  const digits = [21, 14, 7, 0].map((bits) => (bytes >> bits) & 127);
  return Buffer.concat([
    Buffer.from("ID3\x04\x00\x00", "latin1"),
    Buffer.from(digits),
    Buffer.alloc(bytes),
  ]);
}

const varying = (index: number): number => [32, 128, 320][index % 3] ?? 32;

test.each<[what: string, bytes: Buffer, frames: number]>([
  ["a constant rate", Buffer.concat(frames(2_000, () => 128)), 2_000],
  ["a variable rate without an index", Buffer.concat(frames(3_000, varying)), 3_000],
  [
    "silence at first",
    Buffer.concat([...frames(10, () => 32), ...frames(1_000, () => 320)]),
    1_010,
  ],
  [
    "an index that tells one frame",
    Buffer.concat([frame(128, { name: "Xing", frames: 1 }), ...frames(3_000, varying)]),
    3_000,
  ],
  ["a cover of 300 KB", Buffer.concat([tag(300_000), ...frames(500, () => 64)]), 500],
  [
    "bytes between frames, and a tag behind them",
    Buffer.concat([
      ...frames(200, () => 128),
      Buffer.alloc(5_000, 1),
      ...frames(300, () => 96),
      Buffer.from("TAG"),
      Buffer.alloc(125),
    ]),
    500,
  ],
])("an MP3 is as long as its frames: %s", async (_, bytes, count) => {
  const { heldMs, isKnown } = await lengthOf(bytes, "a.mp3");
  expect(isKnown).toBe(true);
  expect(heldMs / 1_000).toBeCloseTo(secondsOf(count), 2);
});

test("AAC without a container is as long as its frames", async () => {
  const bytes = Buffer.alloc(200, 0x21);
  // ADTS: MPEG-4, without a checksum, low complexity, 16 kHz, one channel, 200 bytes.
  Buffer.from([0xff, 0xf1, 0x60, 0x40, 0x19, 0x1f, 0xfc]).copy(bytes);
  const { heldMs } = await lengthOf(
    Buffer.concat(Array.from({ length: 500 }, () => bytes)),
    "a.aac",
  );
  expect(heldMs).toBe((500 * 1_024 * 1_000) / 16_000);
});

/** Returns an element of a Matroska file, of unknown size where it has no body of its own. */
function element(id: number[], body?: Buffer): Buffer {
  if (body === undefined) return Buffer.from([...id, 0x01, 255, 255, 255, 255, 255, 255, 255]);
  return Buffer.concat([
    Buffer.from([...id, 0x20 | (body.length >> 16), (body.length >> 8) & 255, body.length & 255]),
    body,
  ]);
}

/** Returns a recording as browsers write it: live, so that nothing tells its length. */
function recording(seconds: number): Buffer {
  const header = element([0x1a, 0x45, 0xdf, 0xa3], element([0x42, 0x82], Buffer.from("webm")));
  const info = element(
    [0x15, 0x49, 0xa9, 0x66],
    element([0x2a, 0xd7, 0xb1], Buffer.from([0x0f, 0x42, 0x40])),
  );
  const clusters = Array.from({ length: seconds / 10 }, (_, index) => {
    const time = Buffer.alloc(4);
    time.writeUInt32BE(index * 10_000);
    const blocks = Array.from({ length: 500 }, (__, at) => {
      const block = Buffer.alloc(84, 7);
      block[0] = 0x81;
      block.writeInt16BE(at * 20, 1);
      return element([0xa3], block);
    });
    return Buffer.concat([element([0x1f, 0x43, 0xb6, 0x75]), element([0xe7], time), ...blocks]);
  });
  return Buffer.concat([header, element([0x18, 0x53, 0x80, 0x67]), info, ...clusters]);
}

test.each([
  ["in its last cluster", Buffer.alloc(0)],
  // Cues, whose id read as one of one byte leads to what resembles a block.
  [
    "before an index",
    Buffer.concat([Buffer.from([0x1c, 0x53, 0xbb, 0x6b]), Buffer.alloc(5_050), hugeBlock()]),
  ],
])("a recording of a browser is as long as its last block is late: %s", async (_, behind) => {
  const bytes = Buffer.concat([recording(60), behind]);
  const length = await lengthOf(bytes, "recording.webm", "audio/webm");
  expect(length).toMatchObject({ heldMs: 59_980, isKnown: true });
});

/** Returns a block that is the latest possible. */
function hugeBlock(): Buffer {
  return element([0xa3], Buffer.from([0x81, 0x7f, 0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8]));
}

/** Returns a page of an Ogg file with one packet, which ends at a position. */
function page(packet: Buffer, { position, type = 0 }: { position: number; type?: number }): Buffer {
  const head = Buffer.alloc(28);
  head.write("OggS", "latin1");
  head[5] = type;
  head.writeBigInt64LE(BigInt(position), 6);
  head[26] = 1;
  head[27] = packet.length;
  return Buffer.concat([head, packet]);
}

/** Returns Opus of so many seconds in pages of one packet of 20 ms, as calls and chats write it. */
function opus(seconds: number): Buffer {
  const head = Buffer.from("OpusHead\x01\x01\x38\x01\x80\x3e\0\0\0\0\0", "latin1");
  const tags = Buffer.from("OpusTags\x04\0\0\0test\0\0\0\0", "latin1");
  return Buffer.concat([
    page(head, { position: 0, type: 2 }),
    page(tags, { position: 0 }),
    ...Array.from({ length: seconds * 50 }, (_, index) =>
      page(Buffer.alloc(40, 7), { position: 312 + (index + 1) * 960 }),
    ),
  ]);
}

test.each([1, 30, 600])("Opus in Ogg is as long as its last page tells: %d s", async (seconds) => {
  const length = await lengthOf(opus(seconds), "voice.ogg", "audio/ogg");
  expect(length).toMatchObject({ heldMs: seconds * 1_000, isKnown: true });
});

test("Vorbis in Ogg is as long as its last page tells", async () => {
  const head = Buffer.alloc(30);
  head.write("\x01vorbis", "latin1");
  head[11] = 1;
  head.writeUInt32LE(16_000, 12);
  const pages = Array.from({ length: 40 }, (_, index) =>
    page(Buffer.alloc(250, 9), { position: (index + 1) * 4_000 }),
  );
  const bytes = Buffer.concat([page(head, { position: 0, type: 2 }), ...pages]);
  expect(await lengthOf(bytes, "a.ogg", "audio/ogg")).toMatchObject({ heldMs: 10_000 });
});

test.each([
  ["nothing but ones", Buffer.alloc(300_000, 0xff)],
  ["a beginning of a WebM", Buffer.from([0x1a, 0x45, 0xdf, 0xa3, ...Buffer.alloc(5_000)])],
  [
    "a scale of a WebM without an end",
    Buffer.from([0x1a, 0x45, 0xdf, 0xa3, 0x2a, 0xd7, 0xb1, 0x01, ...Buffer.alloc(90, 255)]),
  ],
  ["tags within tags", Buffer.concat(Array.from({ length: 500 }, () => tag(0)))],
  ["a cut head of a WAV", wav(1).subarray(0, 40)],
])("a file without sound is held by its bytes: %s", async (_, bytes) => {
  const { heldMs, mostMs } = await lengthOf(bytes);
  expect(heldMs).toBe(mostMs);
});

test.each([
  ["bytes that each look like a frame", Buffer.alloc(1_000_000, 0xff)],
  [
    "thousands of chunks",
    Buffer.concat([
      Buffer.from("FORM\0\0\0\0AIFF", "latin1"),
      ...Array.from({ length: 100_000 }, () => Buffer.from("junk\0\0\0\0", "latin1")),
    ]),
  ],
])(
  "a file that is made to be read for long is read no longer than others: %s",
  async (_, bytes) => {
    let reads = 0;
    const content = inMemory(bytes);
    const counting = {
      size: content.size,
      read(start: number, length: number) {
        reads += 1;
        return content.read(start, length);
      },
    };
    await soundLength(counting, { filename: "a.mp3", type: "audio/mpeg" });
    expect(reads).toBeLessThan(6_000);
  },
);
