import { UpstreamFailure } from "./upstream-failure.ts";

/** One message of an Amazon event stream. */
export interface EventStreamMessage {
  /** Headers whose value is text; those of other types are of no use here. */
  headers: ReadonlyMap<string, string>;
  payload: Uint8Array;
}

/** Bytes that one message may have, so that a false length cannot fill the memory; Amazon's own bound. */
const maxMessageBytes = 16 * 1024 * 1024;
/** Total length, length of the headers, and a checksum over both: three times four bytes. */
const preludeBytes = 12;
const checksumBytes = 4;
const textHeader = 7;

/**
 * Bytes that the value of a header takes by its type; text and byte strings state theirs in two bytes.
 * Order: true, false, byte, short, integer, long, byte string, text, timestamp, UUID.
 */
const valueBytesByType = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16];

/**
 * Reads the first message of the bytes; undefined while it is not whole. Throws `UpstreamFailure` for
 * bytes that cannot be one: a false checksum, or lengths that do not fit.
 * Source: docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html (2026-11), which the
 * type application/vnd.amazon.eventstream follows everywhere.
 */
export function readMessage(
  bytes: Uint8Array,
): { message: EventStreamMessage; byteLength: number } | undefined {
  if (bytes.byteLength < preludeBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const byteLength = view.getUint32(0);
  const headerBytes = view.getUint32(4);
  checkSum(
    bytes.subarray(0, preludeBytes - checksumBytes),
    view.getUint32(preludeBytes - checksumBytes),
  );
  if (byteLength > maxMessageBytes) throw broken("a message is too large");
  if (preludeBytes + headerBytes + checksumBytes > byteLength)
    throw broken("the lengths of a message do not fit");
  if (bytes.byteLength < byteLength) return undefined;
  const end = byteLength - checksumBytes;
  checkSum(bytes.subarray(0, end), view.getUint32(end));
  const headersEnd = preludeBytes + headerBytes;
  const headers = readHeaders(bytes.subarray(preludeBytes, headersEnd));
  return { byteLength, message: { headers, payload: bytes.subarray(headersEnd, end) } };
}

function checkSum(bytes: Uint8Array, expected: number): void {
  if (Bun.hash.crc32(bytes) !== expected) throw broken("a checksum is wrong");
}

function readHeaders(bytes: Uint8Array): Map<string, string> {
  const headers = new Map<string, string>();
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let position = 0;
  const take = (count: number): number => {
    const start = position;
    position += count;
    if (position > buffer.length) throw broken("a header is cut");
    return start;
  };
  while (position < buffer.length) {
    const nameBytes = buffer.readUInt8(take(1));
    const nameStart = take(nameBytes);
    const type = buffer.readUInt8(take(1));
    if (type >= valueBytesByType.length) throw broken("a header has an unknown type");
    const valueBytes = valueBytesByType[type] ?? buffer.readUInt16BE(take(2));
    const valueStart = take(valueBytes);
    if (type === textHeader) {
      headers.set(
        buffer.toString("utf8", nameStart, nameStart + nameBytes),
        buffer.toString("utf8", valueStart, valueStart + valueBytes),
      );
    }
  }
  return headers;
}

const broken = (observation: string): UpstreamFailure =>
  new UpstreamFailure("malformed_response", `the event stream is broken: ${observation}`, {
    sent: true,
  });
