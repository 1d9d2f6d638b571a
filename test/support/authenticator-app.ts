import { createHmac } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function bytesOf(base32: string): Buffer {
  const bits = [...base32.replace(/=+$/, "")]
    .map((character) => alphabet.indexOf(character).toString(2).padStart(5, "0"))
    .join("");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

/** Returns a code that is not shown by the app before, at or after the current half minute. */
export function wrongCodeOf(uri: string, nowMs: number): string {
  const shown = [-60_000, -30_000, 0, 30_000, 60_000].map((ms) => codeOf(uri, nowMs + ms));
  const codes = ["000000", "111111", "222222", "333333", "444444", "555555"];
  return codes.find((code) => !shown.includes(code)) ?? "";
}

/**
 * Returns the code that an authenticator app shows for the URI it was set up with (RFC 6238, SHA-1,
 * six digits).
 */
export function codeOf(uri: string, nowMs: number): string {
  const secret = bytesOf(new URL(uri).searchParams.get("secret") ?? "");
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(nowMs / 30_000)));
  const digest = createHmac("sha1", secret).update(counter).digest();
  const offset = (digest.at(-1) ?? 0) & 15;
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
