import { timingSafeEqual } from "node:crypto";
import { brand } from "../../platform/lib/brand.ts";

const pattern = new RegExp(`(?:^|;\\s*)${brand.sessionCookie}=([^;]*)`);

/** The session cookie of a `Cookie` header, as it was sent; undefined where there is none. */
export const sessionCookieOf = (header: string | null): string | undefined =>
  header === null ? undefined : pattern.exec(header)?.[1] || undefined;

const decoded = (value: string): string | undefined => {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
};

/**
 * The token of a session cookie, `token.signature`, where the signature is ours: HMAC-SHA256 in base64 under
 * the secret for sign-in. The database has the tokens alone, so whoever reads it has no session.
 */
export function tokenOfCookie(value: string, secret: string): string | undefined {
  const text = decoded(value);
  const dot = text?.lastIndexOf(".") ?? -1;
  if (text === undefined || dot < 1) return undefined;
  const token = text.slice(0, dot);
  const expected = new Bun.CryptoHasher("sha256", secret).update(token).digest();
  const given = Buffer.from(text.slice(dot + 1), "base64");
  return given.length === expected.length && timingSafeEqual(given, expected) ? token : undefined;
}
