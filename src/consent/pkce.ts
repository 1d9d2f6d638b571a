import { createHash, timingSafeEqual } from "node:crypto";

/** How a challenge was made of its verifier (RFC 7636, section 4.2). */
export type ChallengeMethod = "S256" | "plain";

/** Bounds of a verifier in characters (RFC 7636, section 4.1). */
export const verifierCharacters = { min: 43, max: 128 } as const;

/** A challenge or verifier: unreserved characters of RFC 3986 alone. */
export const pkcePattern = /^[A-Za-z0-9._~-]{43,128}$/;

/** Whether a verifier is the one that a challenge was made of, compared in constant time. */
export function verifies(
  verifier: string,
  { challenge, method }: { challenge: string; method: ChallengeMethod },
): boolean {
  const made =
    method === "S256" ? createHash("sha256").update(verifier).digest("base64url") : verifier;
  const given = Buffer.from(challenge);
  const expected = Buffer.from(made);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
