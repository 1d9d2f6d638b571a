import { hkdfSync } from "node:crypto";
import { randomBase62 } from "../../platform/kernel/ids.ts";

/** Hashes secrets for storage and lookup. */
export interface SecretHasher {
  /** Returns the keyed hash in hexadecimal; the same secret yields the same hash. */
  hash(secret: string): string;
}

/**
 * Creates a hasher: HMAC-SHA256 under a pepper derived from the encryption key (HKDF, RFC 5869).
 * Secrets have more than 128 random bits, so no slow hash is needed. The pepper makes a stolen
 * database useless for matching, and finding a key by its hash compares no secret byte by byte.
 */
export function createSecretHasher(encryptionKey: Uint8Array): SecretHasher {
  const pepper = new Uint8Array(
    hkdfSync("sha256", encryptionKey, "", "switchyard credential pepper v1", 32),
  );
  return {
    hash: (secret) => new Bun.CryptoHasher("sha256", pepper).update(secret).digest("hex"),
  };
}

/** Characters of a new secret behind its prefix: 43 of 62 are more than 256 bits. */
const secretLength = 43;

/** Returns a new secret of a credential family. It is shown once and kept nowhere. */
export const newSecret = (prefix: string): string => prefix + randomBase62(secretLength);

/**
 * Returns the first and last characters of a secret: enough to recognise it and too few to use it.
 */
export const maskSecret = (secret: string, prefix: string): string =>
  `${secret.slice(0, prefix.length + 4)}...${secret.slice(-4)}`;
