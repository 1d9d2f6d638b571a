/** A JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object; a key with the value undefined is not written. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}
