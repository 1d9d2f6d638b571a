type Optional<T extends object> = { [K in keyof T]?: T[K] | undefined };

/** The fields that have a value: lets optional ones be written as an expression that may be undefined. */
export function withoutUndefined<T extends object>(
  fields: { [K in keyof T]: T[K] | undefined },
): T {
  // A copy, since an object that a member was deleted from is slow to read and to write from then on.
  for (const key in fields) if (fields[key] === undefined) return joined<T>(fields);
  return fields as T;
}

/** The fields of several objects that have a value; of one that stands in two of them, the later value at the earlier place. */
export function joined<T extends object>(...sources: readonly Optional<T>[]): T {
  const defined: Optional<T> = {};
  for (const fields of sources) {
    for (const key in fields) {
      const value = fields[key];
      if (value !== undefined) defined[key] = value;
    }
  }
  return defined as T;
}
