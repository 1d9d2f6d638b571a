/** The members of an unchecked JSON object. */
export type JsonFields = Readonly<Record<string, unknown>>;

/** Returns whether a value is a JSON object, and not an array. */
export const isObject = (value: unknown): value is JsonFields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the members of a value; none where it is not an object. */
export const fieldsOf = (value: unknown): JsonFields => (isObject(value) ? value : {});

/** Returns the entries of a value; none where it is not a list. */
export const entriesOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : [];
