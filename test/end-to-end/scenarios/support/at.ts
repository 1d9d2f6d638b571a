/**
 * The value at a dotted path of something parsed, such as `error.metadata.fault`; undefined where
 * there is none.
 */
export const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((inner, key) => Reflect.get(Object(inner), key), value);
