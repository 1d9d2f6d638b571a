import { z } from "zod";

/** Largest body of a route of the account plane. */
export const accountBodyBytesMax = 256 * 1024;

/** The most characters of a text, and what is said to longer ones: a schema's own words are about another mistake. */
export const atMost = (characters: number): [number, string] => [characters, `must have at most ${characters} characters`];

/** A text that both databases keep: none of them takes a zero byte. */
export const plainText = (charactersMax: number) => z.string().max(...atMost(charactersMax)).regex(/^[^\0]*$/, "must not hold a zero byte");

/** What people call a record; spaces around it do not count. */
export const nameField = z.string("is required and must be a text").trim().min(1, "is required and must not be empty")
  .max(...atMost(200)).regex(/^[^\0]*$/, "must not hold a zero byte");

/** A moment with its time zone (ISO 8601). */
export const momentField = z.iso.datetime({ offset: true, error: "must be an ISO 8601 time such as 2027-01-31T00:00:00Z" });

/** The moment in milliseconds since the Unix epoch; null where there is none. */
export const momentMs = (moment: string | null | undefined): number | null => (moment ? Date.parse(moment) : null);

/** The header of answers that show a secret. */
export const neverCached = { "cache-control": "no-store" } as const;
