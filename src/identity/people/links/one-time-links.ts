import type { Kysely } from "kysely";
import type { Clock } from "../../../platform/kernel/clock.ts";
import { randomBase62 } from "../../../platform/kernel/ids.ts";
import type { SecretHasher } from "../../keys/secret-hasher.ts";
import type { PeopleTables } from "../people-tables.ts";

/** Characters of a token in a link: 43 of 62 are more than 256 bits. */
const tokenLength = 43;

/** Returns a new token for a link, and the hash that the database keeps of it. */
export function newOneTimeToken(hasher: SecretHasher): { token: string; hash: string } {
  const token = randomBase62(tokenLength);
  return { token, hash: hasher.hash(token) };
}

/** The database of links, the hasher of their tokens, and the clock by which they expire. */
export interface LinkParts {
  database: Kysely<PeopleTables>;
  hasher: SecretHasher;
  clock: Clock;
}
