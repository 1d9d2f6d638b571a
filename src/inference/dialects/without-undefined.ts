/** The fields that have a value: lets optional ones be written as an expression that may be undefined. */
export function withoutUndefined<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  for (const key in fields) {
    if (fields[key] === undefined) delete fields[key];
  }
  return fields as T;
}
