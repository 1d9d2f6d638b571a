/** Bounds of new passwords, in characters. The upper one limits the cost of hashing. */
export const passwordCharactersMin = 10;
export const passwordCharactersMax = 256;
