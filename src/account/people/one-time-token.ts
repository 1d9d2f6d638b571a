import { randomBase62 } from "../../platform/lib/ids.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";

/** Characters of a token in a link: 43 of 62 are more than 256 bits. */
const tokenLength = 43;

/** A token for a link, and the hash that the database keeps of it. */
export function newOneTimeToken(hasher: SecretHasher): { token: string; hash: string } {
  const token = randomBase62(tokenLength);
  return { token, hash: hasher.hash(token) };
}
