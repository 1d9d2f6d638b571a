import { randomBase62 } from "../../platform/lib/ids.ts";

/** Characters of a minted secret behind its prefix: 43 of 62 are more than 256 bits. */
const secretLength = 43;

/** A new secret of a credential family. It exists in the answer that shows it and nowhere else. */
export const newSecret = (prefix: string): string => prefix + randomBase62(secretLength);
