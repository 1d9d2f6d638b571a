import type { StoredContent } from "../../../../platform/spool/spool.ts";
import { WindowedBytes } from "../../media/windowed-bytes.ts";

/** The beginning of a page (RFC 3533, section 6). */
const capture = Buffer.from("OggS");

/** The bytes of a page's header before its table of segments. */
const pageHeadBytes = 27;

/** How samples are counted in an Ogg file. */
interface Counting {
  samplesPerSecond: number;
  /** Samples that are counted and not heard. */
  skipped: number;
}

/** Reads the first packet: Opus (RFC 7845, 5.1) or Vorbis (Vorbis I, 4.2.2). */
function countingOf(packet: Buffer): Counting | undefined {
  const kind = packet.toString("latin1", 0, 8);
  if (kind === "OpusHead" && packet.length >= 12)
    return { samplesPerSecond: 48_000, skipped: packet.readUInt16LE(10) };
  return kind.startsWith("\x01vorbis") && packet.length >= 16
    ? { samplesPerSecond: packet.readUInt32LE(12), skipped: 0 }
    : undefined;
}

/**
 * Returns the length of Opus or Vorbis in Ogg in milliseconds by the position of its last page:
 * streams of calls and chats have a page for each packet, of which a long one has too many to be
 * read one by one. Undefined for other files.
 */
export async function oggMs(content: StoredContent): Promise<number | undefined> {
  const bytes = new WindowedBytes(content);
  await bytes.load(0, pageHeadBytes);
  if (!bytes.slice(0, 4).equals(capture)) return undefined;
  const counting = countingOf(bytes.slice(pageHeadBytes + (bytes.at(26) ?? 0), 32));
  if (counting === undefined || counting.samplesPerSecond === 0) return undefined;
  // A page has 65,307 bytes at most, so that the last one begins within the second window from the end.
  const step = 60 * 1024;
  for (let back = step; back <= 2 * step; back += step) {
    const at = Math.max(0, bytes.size - back);
    await bytes.load(at, Math.min(step, bytes.size));
    const found = bytes.findLast(capture);
    const position = found < 0 ? undefined : positionOf(bytes.slice(found, pageHeadBytes));
    if (position !== undefined)
      return Math.max(
        0,
        Math.ceil(((position - counting.skipped) * 1_000) / counting.samplesPerSecond),
      );
    if (at === 0) return undefined;
  }
  return undefined;
}

/** Returns the samples up to the end of a page; undefined where no packet ends on it. */
function positionOf(page: Buffer): number | undefined {
  if (page.length < 14) return undefined;
  const position = page.readBigInt64LE(6);
  return position < 0n ? undefined : Number(position);
}
