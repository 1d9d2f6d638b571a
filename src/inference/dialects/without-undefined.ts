/** The fields that have a value: lets optional ones be written as an expression that may be undefined. */
export function withoutUndefined<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  for (const key in fields) if (fields[key] === undefined) return definedOf(fields);
  return fields as T;
}

/** A copy, since an object that a member was deleted from is slow to read and to write from then on. */
function definedOf<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  const defined: Partial<T> = {};
  for (const key in fields) {
    const value = fields[key];
    if (value !== undefined) defined[key] = value;
  }
  return defined as T;
}
