import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from "node:crypto";
import type { KeyObject } from "node:crypto";

/**
 * Bytes of content in one sealed segment. A range is read by the segments that contain it, and only
 * one of them is in memory at a time.
 */
export const segmentBytes = 64 * 1024;

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** Bytes of a segment as it is stored: the content and its tag. */
const sealedBytes = segmentBytes + tagBytes;

/** Returns the bytes of a new key. Each object has its own, since nonces are counted from 0. */
export const newObjectKey = (): Buffer => randomBytes(32);

/** Holds the bytes of a key outside the JavaScript heap. */
export const objectKey = (bytes: Uint8Array): KeyObject => createSecretKey(bytes);

/**
 * Returns the nonce of a segment: its index, and whether it is the last one, so that neither a
 * changed order nor a cut goes unnoticed (Hoang, Reyhanitabar, Rogaway, Vizár 2015, "STREAM").
 */
function nonceOf(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(nonceBytes);
  nonce[0] = isLast ? 1 : 0;
  nonce.writeUInt32BE(index, nonceBytes - 4);
  return nonce;
}

function sealSegment(
  key: KeyObject,
  { content, index, isLast }: { content: Uint8Array; index: number; isLast: boolean },
): Buffer {
  const cipher = createCipheriv(algorithm, key, nonceOf(index, isLast), {
    authTagLength: tagBytes,
  });
  return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]);
}

function openSegment(
  key: KeyObject,
  { sealed, index, isLast }: { sealed: Uint8Array; index: number; isLast: boolean },
): Buffer {
  const decipher = createDecipheriv(algorithm, key, nonceOf(index, isLast), {
    authTagLength: tagBytes,
  });
  const contentEnd = sealed.byteLength - tagBytes;
  decipher.setAuthTag(sealed.subarray(contentEnd));
  return Buffer.concat([decipher.update(sealed.subarray(0, contentEnd)), decipher.final()]);
}

/** Gathers pieces of any size into segments; the last one, which may be empty, is marked. */
async function* segments(
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ content: Uint8Array; isLast: boolean }> {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  for await (const piece of pieces) {
    waitingBytes += piece.byteLength;
    if (waitingBytes <= segmentBytes) {
      // A copy, since a piece is valid until the next one is asked for.
      waiting.push(Uint8Array.from(piece));
      continue;
    }
    const joined = Buffer.concat([...waiting, piece]);
    let start = 0;
    // A whole segment is kept back, since only the end shows whether it is the last one.
    for (; joined.byteLength - start > segmentBytes; start += segmentBytes)
      yield { content: joined.subarray(start, start + segmentBytes), isLast: false };
    waiting = [joined.subarray(start)];
    waitingBytes = joined.byteLength - start;
  }
  yield { content: Buffer.concat(waiting), isLast: true };
}

/** Encrypts an object segment by segment, as its pieces come. */
export async function* sealObject(
  key: KeyObject,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  let index = 0;
  for await (const segment of segments(pieces)) {
    yield sealSegment(key, { ...segment, index });
    index += 1;
  }
}

/** A range of bytes: from the first up to, and without, the last. */
export interface ByteRange {
  from: number;
  to: number;
}

/** Returns the range of the stored form that contains a range of the content. */
export function storedRange({ from, to }: ByteRange, contentBytes: number): ByteRange {
  const first = Math.floor(from / segmentBytes);
  const last = to <= from ? first : Math.floor((to - 1) / segmentBytes);
  const storedEnd = contentBytes + (lastIndexOf(contentBytes) + 1) * tagBytes;
  return { from: first * sealedBytes, to: Math.min((last + 1) * sealedBytes, storedEnd) };
}

const lastIndexOf = (contentBytes: number): number =>
  Math.max(0, Math.ceil(contentBytes / segmentBytes) - 1);

/**
 * Decrypts a range of an object from the stored bytes of `storedRange`. Throws where these are
 * damaged, cut or in another order.
 */
export async function* openObject(
  key: KeyObject,
  {
    stored,
    range: { from, to },
    contentBytes,
  }: { stored: AsyncIterable<Uint8Array>; range: ByteRange; contentBytes: number },
): AsyncGenerator<Buffer> {
  const last = lastIndexOf(contentBytes);
  let index = Math.floor(from / segmentBytes);
  const open = (sealed: Uint8Array): Buffer => {
    const content = openSegment(key, { sealed, index, isLast: index === last });
    const start = index * segmentBytes;
    index += 1;
    return content.subarray(Math.max(0, from - start), Math.max(0, to - start));
  };
  let waiting: Uint8Array = new Uint8Array();
  for await (const piece of stored) {
    waiting = waiting.byteLength === 0 ? piece : Buffer.concat([waiting, piece]);
    while (waiting.byteLength >= sealedBytes) {
      yield open(waiting.subarray(0, sealedBytes));
      waiting = waiting.subarray(sealedBytes);
    }
  }
  if (waiting.byteLength > 0) yield open(waiting);
  const lastAsked =
    to <= from ? Math.floor(from / segmentBytes) : Math.floor((to - 1) / segmentBytes);
  if (index <= lastAsked) throw new Error("a stored object is shorter than its record");
}
