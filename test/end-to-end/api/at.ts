/**
 * The value at a path such as `data.0.id` of parsed JSON; undefined where the path leads nowhere.
 */
export const at = (value: unknown, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (inner, key) =>
        typeof inner === "object" && inner !== null ? Reflect.get(inner, key) : undefined,
      value,
    );

/** The text at a path; the test fails where there is none. */
export function textAt(value: unknown, path: string): string {
  const found = at(value, path);
  if (typeof found !== "string") throw new Error(`no text at ${path} of ${JSON.stringify(value)}`);
  return found;
}

/** The list at a path; the test fails where there is none. */
export function listAt(value: unknown, path: string): unknown[] {
  const found = at(value, path);
  if (!Array.isArray(found)) throw new Error(`no list at ${path} of ${JSON.stringify(value)}`);
  return found;
}

/** The number at a path; the test fails where there is none. */
export function numberAt(value: unknown, path: string): number {
  const found = at(value, path);
  if (typeof found !== "number")
    throw new Error(`no number at ${path} of ${JSON.stringify(value)}`);
  return found;
}
