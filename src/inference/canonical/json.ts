/** A value as JSON has it. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object; a key whose value is undefined is not written. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}
