import type { StoredContent } from "../../../../platform/spool/spool.ts";
import { WindowedBytes } from "../../media/windowed-bytes.ts";

/** A frame as its header describes it. */
interface Frame {
  /** Bytes, with the header. */
  length: number;
  seconds: number;
}

/** Bit rates in kbit/s by version and layer (ISO 11172-3, 2.4.2.3; ISO 13818-3, 2.4.2.3). */
const rates: Readonly<Record<string, readonly number[]>> = {
  "1-1": [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  "1-2": [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  "1-3": [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  "2-1": [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  "2-2": [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  "2-3": [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};

/** Samples per second by the two bits of the version. */
const sampleRates: Readonly<Record<number, readonly number[]>> = {
  0: [11_025, 12_000, 8_000],
  2: [22_050, 24_000, 16_000],
  3: [44_100, 48_000, 32_000],
};

/** Samples per second of AAC (ISO 14496-3, 1.6.3.4). */
const aacRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
  7_350,
];

const headerBytes = 7;

/** Reads the header of a frame of MPEG audio, or of AAC in ADTS; undefined where there is none. */
function frameAt(bytes: WindowedBytes, at: number): Frame | undefined {
  const second = bytes.at(at + 1) ?? 0;
  if (bytes.at(at) !== 0xff || (second & 0xe0) !== 0xe0) return undefined;
  return (second & 0xf6) === 0xf0 ? aacFrame(bytes, at) : mpegFrame(bytes, at);
}

function aacFrame(bytes: WindowedBytes, at: number): Frame | undefined {
  const rate = aacRates[((bytes.at(at + 2) ?? 0) >> 2) & 15];
  const length = (bytes.number(at + 3, 3) >> 5) & 0x1fff;
  const blocks = ((bytes.at(at + 6) ?? 0) & 3) + 1;
  return rate === undefined || length < headerBytes
    ? undefined
    : { length, seconds: (blocks * 1_024) / rate };
}

function mpegFrame(bytes: WindowedBytes, at: number): Frame | undefined {
  const [second, third] = [bytes.at(at + 1) ?? 0, bytes.at(at + 2) ?? 0];
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  const rate = sampleRates[version]?.[(third >> 2) & 3];
  const kbits = rates[`${version === 3 ? 1 : 2}-${layer}`]?.[(third >> 4) - 1];
  if (rate === undefined || kbits === undefined) return undefined;
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152;
  const padding = (third >> 1) & 1;
  const length =
    layer === 1
      ? (Math.floor((12_000 * kbits) / rate) + padding) * 4
      : Math.floor(((samples / 8) * kbits * 1_000) / rate) + padding;
  return { length, seconds: samples / rate };
}

/** The most tags before the sound. */
const tagsMax = 16;

/** Returns where the sound begins: behind the tags that precede it (ID3v2.4, 3.1). */
export async function behindTags(bytes: WindowedBytes): Promise<number> {
  let at = 0;
  for (let tags = 0; ; tags += 1) {
    await bytes.load(at, 10);
    if (tags === tagsMax || bytes.slice(at, 3).toString("latin1") !== "ID3") return at;
    const digits = [...bytes.slice(at + 6, 4)];
    const hasFooter = ((bytes.at(at + 5) ?? 0) & 0x10) !== 0;
    at += 10 + digits.reduce((sum, digit) => sum * 128 + (digit & 127), 0) + (hasFooter ? 10 : 0);
  }
}

/** The bytes within which the first frame has to begin. */
const searchedBytes = 64 * 1024;

/**
 * Returns the length of an MP3 or of AAC without a container, in milliseconds: the sum of its
 * frames, since a header that tells their number is written by its sender. Undefined for other
 * sound. The file is read once, in windows.
 */
export async function mpegMs(content: StoredContent): Promise<number | undefined> {
  const bytes = new WindowedBytes(content);
  const begin = await behindTags(bytes);
  let at = begin;
  let seconds = 0;
  let frames = 0;
  const other = { bytes: 0, marks: 0 };
  while (at + headerBytes <= content.size) {
    await bytes.load(at, 2 * headerBytes);
    const next = walk(bytes, { from: at, other }, (frame, position) => {
      frames += 1;
      if (frames > 1 || !isIndex(bytes, position)) seconds += frame.seconds;
    });
    if (next === at || other.marks > marksMax) return undefined;
    if (frames === 0 && next - begin > searchedBytes) return undefined;
    at = next;
  }
  // Bytes that resemble two frames by chance are no sound.
  const isSound = frames >= 2 && other.bytes <= (content.size - begin) / 2;
  return !isSound ? undefined : Math.round(seconds * 1_000);
}

/** Returns whether a frame has an index of the others in place of sound, as encoders write first. */
const isIndex = (bytes: WindowedBytes, at: number): boolean =>
  /Xing|Info|VBRI/.test(bytes.slice(at + 4, 44).toString("latin1"));

/** The most places between frames that look like the beginning of one. */
const marksMax = 20_000;

/**
 * Counts the frames of a window from a position on, and what is none of them. Returns where the next
 * window begins.
 */
function walk(
  bytes: WindowedBytes,
  { from, other }: { from: number; other: { bytes: number; marks: number } },
  count: (frame: Frame, position: number) => void,
): number {
  let at = from;
  let isInStep = false;
  while (bytes.has(at, headerBytes) && at + headerBytes <= bytes.size) {
    const frame = frameAt(bytes, at);
    if (frame !== undefined && (isInStep || isFollowed(bytes, at + frame.length))) {
      count(frame, at);
      at += frame.length;
      isInStep = true;
      continue;
    }
    isInStep = false;
    other.marks += 1;
    const mark = bytes.find(0xff, at + 1);
    const next = mark < 0 ? Math.max(bytes.end, at + 1) : mark;
    other.bytes += next - at;
    if (mark < 0 || other.marks > marksMax) return next;
    at = next;
  }
  return at;
}

/** Returns whether another frame, a tag, or the end stands where a frame ends; also where unknown. */
const isFollowed = (bytes: WindowedBytes, at: number): boolean =>
  !bytes.has(at, headerBytes) ||
  at + headerBytes > bytes.size ||
  frameAt(bytes, at) !== undefined ||
  bytes.slice(at, 3).toString("latin1") === "TAG";
