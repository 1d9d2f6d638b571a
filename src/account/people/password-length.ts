/** Bounds of new passwords, in characters; the upper one keeps hashing cheap to refuse. */
export const passwordCharactersMin = 10;
export const passwordCharactersMax = 256;
