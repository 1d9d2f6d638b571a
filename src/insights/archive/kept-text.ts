import type { KeptText } from "./content-insert.ts";

/** The most characters that are kept of a request, and of an answer. */
export const keptCharactersMax = 256 * 1024;

/** Returns the beginning of a text, as much of it as is kept, cut between whole characters. */
export const keptText = (text: string): KeptText =>
  text.length <= keptCharactersMax
    ? { text, isCut: false }
    : { text: text.slice(0, keptCharactersMax).toWellFormed(), isCut: true };
