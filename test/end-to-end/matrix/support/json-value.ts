/** A JSON object of which nothing is known. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object; an empty one where it is none. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** The objects of a list; none where it is no list. */
export const listOf = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.map(fieldsOf) : [];

/** The value as text; an empty one where it is none. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** JSON text as a value; undefined where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Anything as a word of a message. */
export const wordOf = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined");

/** The value as a number; none where it is no number. */
export const numberOf = (value: unknown): number =>
  typeof value === "number" ? value : Number.NaN;
