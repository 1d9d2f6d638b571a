import { randomFillSync } from "node:crypto";

/** Prefixes of record ids, so that an id in a log explains itself. */
export type IdPrefix =
  | "key" | "mgk" | "gen" | "resp" | "prs" | "byok" | "ws" | "org" | "usr" | "txn" | "msg" | "chatcmpl";

const pool = Buffer.alloc(4096);
let poolOffset = pool.length;

function randomHex(byteCount: number): string {
  if (poolOffset + byteCount > pool.length) {
    randomFillSync(pool);
    poolOffset = 0;
  }
  const hex = pool.toString("hex", poolOffset, poolOffset + byteCount);
  poolOffset += byteCount;
  return hex;
}

/**
 * 32 hexadecimal digits: 48 bits of wall time in milliseconds, then 80 random bits. Sorts by time
 * (rows append to their index) and is a valid W3C trace id.
 */
export function timeOrderedHex(nowMs: number): string {
  return nowMs.toString(16).padStart(12, "0") + randomHex(10);
}

/** A new record id such as `key_0192...`, ordered by time. */
export const newId = (prefix: IdPrefix, nowMs: number): string => `${prefix}_${timeOrderedHex(nowMs)}`;

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Random text of `length` base-62 characters, uniform (bytes past the last multiple of 62 are drawn again). */
export function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomFillSync(Buffer.alloc(length * 2))) {
      if (byte < 248 && text.length < length) text += base62[byte % 62];
    }
  }
  return text;
}
