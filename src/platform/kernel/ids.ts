import { randomBytes, randomFillSync } from "node:crypto";

/** The prefixes of record ids, which show the kind of an id. */
export type IdPrefix =
  | "key"
  | "mgk"
  | "gen"
  | "resp"
  | "prs"
  | "byok"
  | "ws"
  | "org"
  | "usr"
  | "ses"
  | "acct"
  | "vrf"
  | "hub"
  | "prm"
  | "skl"
  | "kbd"
  | "plg"
  | "bnd"
  | "cnv"
  | "psk"
  | "inv"
  | "txn"
  | "ipa"
  | "aud"
  | "msg"
  | "chatcmpl"
  | "hev"
  | "inc"
  | "job"
  | "top"
  | "bud"
  | "alr"
  | "dlv"
  | "con"
  | "file"
  | "batch"
  | "upload"
  | "part"
  | "run"
  | "mev"
  | "team";

/**
 * Bytes of random digits that are drawn at once: a system call and a conversion for each id would
 * cost more than the rest of it.
 */
const poolBytes = 4096;
let poolHex = "";
let poolOffset = 0;

function randomHex(byteCount: number): string {
  const digitCount = byteCount * 2;
  if (poolOffset + digitCount > poolHex.length) {
    poolHex = randomBytes(poolBytes).toString("hex");
    poolOffset = 0;
  }
  poolOffset += digitCount;
  return poolHex.slice(poolOffset - digitCount, poolOffset);
}

const countMax = 0xfff;
let countedMs = 0;
let count = 0;

/**
 * Returns how many ids this process created before in a millisecond; 4,095 for all that come after
 * those.
 */
function countWithin(nowMs: number): number {
  if (nowMs !== countedMs) {
    countedMs = nowMs;
    count = 0;
  } else if (count < countMax) count += 1;
  return count;
}

/**
 * Returns 32 hexadecimal digits: 48 bits of wall time in milliseconds, 12 bits that count within
 * the millisecond (RFC 9562, section 6.2, method 1), then 68 random bits. They sort in the order in
 * which a process created them, so that rows append to their index and lists show the newest first,
 * and they are valid W3C trace ids.
 */
export function timeOrderedHex(nowMs: number): string {
  const counted = countWithin(nowMs).toString(16).padStart(3, "0");
  return nowMs.toString(16).padStart(12, "0") + counted + randomHex(9).slice(1);
}

/**
 * Returns whether a text may be the id of a record. Any other text is not passed to a database:
 * Postgres rejects a zero byte with an error that would be answered as 500.
 */
export const mayBeId = (text: string): boolean => /^[\w-]{1,100}$/.test(text);

/** Returns a new record id such as `key_0192...`, ordered by time. */
export const newId = (prefix: IdPrefix, nowMs: number): string =>
  `${prefix}_${timeOrderedHex(nowMs)}`;

/** Returns the lowest possible id of a record at a wall time, since ids begin with the time. */
export const lowestId = (prefix: IdPrefix, atMs: number): string =>
  `${prefix}_${Math.max(0, Math.floor(atMs)).toString(16).padStart(12, "0")}`;

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Returns random text of `length` base-62 characters. It is uniform: bytes beyond the last multiple
 * of 62 are drawn again.
 */
export function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomFillSync(Buffer.alloc(length * 2))) {
      if (byte < 248 && text.length < length) text += base62[byte % 62];
    }
  }
  return text;
}
