import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Extensions, DialectId } from "../canonical/dialect-id.ts";
import type { JsonObject, JsonValue } from "../canonical/json.ts";

/** A refusal that names the field and says how to mend it. */
export const badRequest = (param: string, problem: string): GatewayError =>
  new GatewayError("bad_request", `${param} ${problem}`, { param });

/** Content that the dialect cannot carry and that must not be dropped in silence. */
export const unsupportedContent = (param: string, problem: string): GatewayError =>
  new GatewayError("unsupported_content", `${param} ${problem}`, { param });

/** Path of a member, such as `messages[2].role`. */
export const memberPath = (path: string, key: string): string =>
  path === "" ? key : `${path}.${key}`;

/** The value as a JSON object; arrays and null are none. */
export const asObject = (value: unknown): JsonObject | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;

/** The value as a JSON array. */
export const asArray = (value: unknown): readonly JsonValue[] | undefined =>
  Array.isArray(value) ? (value as readonly JsonValue[]) : undefined;

/** The value when it is text. */
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

/** The value when it is a number. */
export const asNumber = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/** The value when it is a boolean. */
const asBoolean = (value: unknown): boolean | undefined =>
  typeof value === "boolean" ? value : undefined;

/**
 * Reads members of one object of a client's request. Null and absent mean the same; a value of
 * another type is refused with the member's path.
 */
export class RequestFields {
  readonly object: JsonObject;
  readonly path: string;

  constructor(value: unknown, path: string) {
    const object = asObject(value);
    if (object === undefined)
      throw badRequest(path === "" ? "body" : path, "must be a JSON object.");
    this.object = object;
    this.path = path;
  }

  pathOf(key: string): string {
    return memberPath(this.path, key);
  }

  string(key: string): string | undefined {
    return this.read(key, asString, "must be a string; leave it out if you have none.");
  }

  requiredString(key: string): string {
    const value = this.string(key);
    if (value === undefined)
      throw badRequest(this.pathOf(key), "is required and must be a string.");
    return value;
  }

  number(key: string): number | undefined {
    return this.read(key, asNumber, "must be a number; leave it out for the model's default.");
  }

  boolean(key: string): boolean | undefined {
    return this.read(key, asBoolean, "must be true or false.");
  }

  objectField(key: string): JsonObject | undefined {
    return this.read(key, asObject, "must be an object; leave it out if you have none.");
  }

  array(key: string): readonly JsonValue[] | undefined {
    return this.read(key, asArray, "must be an array; leave it out if you have none.");
  }

  strings(key: string): readonly string[] | undefined {
    const values = this.array(key);
    values?.forEach((value, index) => {
      if (typeof value !== "string")
        throw badRequest(`${this.pathOf(key)}[${index}]`, "must be a string.");
    });
    return values as readonly string[] | undefined;
  }

  /** The member as fields of its own; undefined when it is absent. */
  nested(key: string): RequestFields | undefined {
    const value = this.object[key];
    return value === undefined || value === null
      ? undefined
      : new RequestFields(value, this.pathOf(key));
  }

  /** Every entry of an array of objects as fields of its own. */
  nestedList(key: string): RequestFields[] | undefined {
    return this.array(key)?.map(
      (value, index) => new RequestFields(value, `${this.pathOf(key)}[${index}]`),
    );
  }

  /** Members that the canonical form has no name for; undefined when there are none. */
  unknown(dialect: DialectId, known: ReadonlySet<string>): Extensions | undefined {
    let fields: Record<string, JsonValue> | undefined;
    for (const key in this.object) {
      const value = this.object[key];
      if (!known.has(key) && value !== undefined) (fields ??= {})[key] = value;
    }
    return fields && { dialect, fields };
  }

  private read<T>(
    key: string,
    as: (value: unknown) => T | undefined,
    problem: string,
  ): T | undefined {
    const value = this.object[key];
    if (value === undefined || value === null) return undefined;
    const read = as(value);
    if (read === undefined) throw badRequest(this.pathOf(key), problem);
    return read;
  }
}

type Optional<T extends object> = { [K in keyof T]?: T[K] | undefined };

/**
 * The fields that have a value: lets optional ones be written as an expression that may be
 * undefined.
 */
export function withoutUndefined<T extends object>(
  fields: { [K in keyof T]: T[K] | undefined },
): T {
  // A copy, since an object that a member was deleted from is slow to read and to write from then
  // on.
  for (const key in fields) if (fields[key] === undefined) return joined<T>(fields);
  return fields as T;
}

/**
 * The fields of several objects that have a value; of one that stands in two of them, the later
 * value at the earlier place.
 */
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

/** A count beyond this is no count: the largest context windows are a thousandth of it. */
const absurdCount = 1_000_000_000;

/** Zero for the negative zero that JSON can say, and any other number as it is. */
const withoutSign = (count: number): number => (count === 0 ? 0 : count);

/** Reads counts of usage and remembers whether one of them could not be true. */
export class CountReader {
  clamped = false;

  /** A count of tokens; undefined when none was reported. */
  read(value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= absurdCount)
      return withoutSign(value);
    this.clamped = true;
    if (typeof value !== "number" || Number.isNaN(value)) return undefined;
    return withoutSign(Math.min(absurdCount, Math.max(0, Math.round(value))));
  }

  /** A part of a whole; what does not fit is cut off and noted. */
  within(part: number, whole: number): number {
    if (part <= whole) return part;
    this.clamped = true;
    return whole;
  }
}
