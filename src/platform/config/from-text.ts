/** A number that came out of an environment reference is text. */
export const numberFromText = (value: unknown): unknown =>
  typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;

/** So is a truth. */
export const booleanFromText = (value: unknown): unknown =>
  value === "true" ? true : value === "false" ? false : value;
