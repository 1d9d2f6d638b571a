import type { EncodeState } from "../encode-state.ts";

/** An address of electronic mail, or a number that could be a telephone's. */
const personal = /@|^\+?[\d\s().-]{7,}$/;

/**
 * The end user's id. Anthropic wants one that tells nothing about the person, so what looks like an
 * address is sent as its hash, the same for the same user.
 */
export function userIdOf({ request, sameDialect }: EncodeState): string | undefined {
  const id = request.endUserId ?? request.safetyIdentifier;
  if (id === undefined || sameDialect || !personal.test(id)) return id;
  return `user_${new Bun.CryptoHasher("sha256").update(id).digest("hex").slice(0, 32)}`;
}
