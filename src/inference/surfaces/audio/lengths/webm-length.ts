import type { StoredContent } from "../../../../platform/spool/spool.ts";
import { WindowedBytes } from "../../media/windowed-bytes.ts";

/** Ids of elements (RFC 9559, section 5.1). */
const [cluster, timestampScale] = [
  Buffer.from([0x1f, 0x43, 0xb6, 0x75]),
  Buffer.from([0x2a, 0xd7, 0xb1]),
];
const [timestamp, simpleBlock, blockGroup, block] = [0xe7, 0xa3, 0xa0, 0xa1];

/** The bytes from the end within which the last cluster begins: browsers write one each second or ten. */
const tailBytes = 4 * 1024 * 1024;

/** Returns the size of an element, and the bytes that it takes (RFC 8794, 4.2). */
function sizeAt(bytes: WindowedBytes, at: number): { size: number; length: number } {
  const first = bytes.at(at) ?? 0;
  const length = Math.clz32(first) - 23;
  const head = first & ((1 << (8 - length)) - 1);
  let size = head;
  for (let index = 1; index < length; index += 1) size = size * 256 + (bytes.at(at + index) ?? 0);
  // All ones: unknown, up to the end of what is around it.
  const isOpen = size === 2 ** (7 * length) - 1;
  return { size: isOpen ? Number.POSITIVE_INFINITY : size, length };
}

/**
 * Returns the length of a WebM in milliseconds by the time of its last block: recordings of browsers
 * tell no length in their head. Undefined for other files, and where no block is found.
 */
export async function webmMs(content: StoredContent): Promise<number | undefined> {
  const bytes = new WindowedBytes(content);
  await bytes.load(0, 4);
  if (bytes.number(0, 4) !== 0x1a45dfa3) return undefined;
  const scaleAt = bytes.slice(0, 8 * 1024).indexOf(timestampScale);
  const { size: scaleBytes = 0, length = 1 } = scaleAt < 0 ? {} : sizeAt(bytes, scaleAt + 3);
  const nanoseconds =
    scaleAt < 0 ? 1_000_000 : bytes.number(scaleAt + 3 + length, Math.min(8, scaleBytes));
  const begin = await lastCluster(bytes);
  if (begin === undefined) return undefined;
  const ticks = await lastTick(bytes, begin);
  return ticks === undefined ? undefined : Math.ceil((ticks * nanoseconds) / 1e6);
}

/** Returns the position of the last cluster; undefined where none is near the end. */
async function lastCluster(bytes: WindowedBytes): Promise<number | undefined> {
  const step = 60 * 1024;
  for (let back = step; ; back += step) {
    const at = Math.max(0, bytes.size - back);
    await bytes.load(at, step + cluster.byteLength);
    const found = bytes.findLast(cluster);
    if (found >= 0) return found;
    if (at === 0 || back > tailBytes) return undefined;
  }
}

/** Returns the time of the last block of a cluster, in ticks. */
async function lastTick(bytes: WindowedBytes, begin: number): Promise<number | undefined> {
  await bytes.load(begin, 64);
  const { size, length } = sizeAt(bytes, begin + 4);
  const end = Math.min(bytes.size, begin + 4 + length + size);
  let at = begin + 4 + length;
  let base: number | undefined;
  let last = 0;
  while (at + 2 < end) {
    if (!bytes.has(at, 16)) await bytes.load(at, 16);
    const id = bytes.at(at) ?? 0;
    // Ids say their length as sizes do. One of four bytes begins what follows a cluster of unknown size.
    const idLength = Math.clz32(id) - 23;
    if (idLength > 3) break;
    const inner = sizeAt(bytes, at + idLength);
    const body = at + idLength + inner.length;
    if (id === timestamp) base = bytes.number(body, Math.min(8, inner.size));
    if (id === simpleBlock || id === block) {
      const relative = bytes.number(body + 1, 2);
      last = Math.max(last, relative > 0x7fff ? relative - 0x10000 : relative);
    }
    // A group is entered, since its block stands within it.
    at = id === blockGroup ? body : body + inner.size;
  }
  return base === undefined ? undefined : base + last;
}
