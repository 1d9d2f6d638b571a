import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Extensions, DialectId } from "../../canonical/dialect-id.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";

/** Builds a refusal that names the field and says how to fix it. */
export const badRequest = (param: string, problem: string): GatewayError =>
  new GatewayError("bad_request", `${param} ${problem}`, { param });

/**
 * Builds the refusal of content that the dialect cannot carry and that must not be dropped
 * silently.
 */
export const unsupportedContent = (param: string, problem: string): GatewayError =>
  new GatewayError("unsupported_content", `${param} ${problem}`, { param });

/** Returns the path of a member, such as `messages[2].role`. */
export const memberPath = (path: string, key: string): string =>
  path === "" ? key : `${path}.${key}`;

/** Returns the value as a JSON object; arrays and null are none. */
export const asObject = (value: unknown): JsonObject | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;

/** Returns the value as a JSON array. */
export const asArray = (value: unknown): readonly JsonValue[] | undefined =>
  Array.isArray(value) ? (value as readonly JsonValue[]) : undefined;

/** Returns the objects of a JSON array; none where the value is no array. */
export const objectsIn = (value: unknown): JsonObject[] =>
  (asArray(value) ?? []).map(asObject).filter((entry) => entry !== undefined);

/** Returns the value when it is text. */
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

/** Returns the value when it is a number. */
export const asNumber = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/** The most parts of a summary that a provider may number. */
const placesMax = 1_000;

/**
 * Returns the place of a part within its whole; 0 for what is none, since lists are filled up to the
 * place of each part.
 */
export const asPlace = (value: unknown): number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) < placesMax ? Number(value) : 0;

/** Returns the value when it is a boolean. */
const asBoolean = (value: unknown): boolean | undefined =>
  typeof value === "boolean" ? value : undefined;

/**
 * Reads members of one object of a client's request. Null and absent mean the same; a value of
 * another type is refused with the member's path.
 */
export class RequestFields {
  readonly object: JsonObject;

  constructor(
    value: unknown,
    readonly path: string,
  ) {
    const object = asObject(value);
    if (object === undefined)
      throw badRequest(path === "" ? "body" : path, "must be a JSON object.");
    this.object = object;
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

  /** Returns the member as fields of its own; undefined when it is absent. */
  nested(key: string): RequestFields | undefined {
    const value = this.object[key];
    return value === undefined || value === null
      ? undefined
      : new RequestFields(value, this.pathOf(key));
  }

  /** Returns every entry of an array of objects as fields of its own. */
  nestedList(key: string): RequestFields[] | undefined {
    return this.array(key)?.map(
      (value, index) => new RequestFields(value, `${this.pathOf(key)}[${index}]`),
    );
  }

  /** Returns members that the canonical form has no name for; undefined when there are none. */
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
 * Removes fields without a value, so that optional ones can be written as an expression that may be
 * undefined.
 */
export function withoutUndefined<T extends object>(
  fields: { [K in keyof T]: T[K] | undefined },
): T {
  // A copy, since an object that a member was deleted from stays slow to read and write.
  for (const key in fields) if (fields[key] === undefined) return joined<T>(fields);
  return fields as T;
}

/**
 * Joins the fields of several objects that have a value. A field in two of them has the later value
 * at the earlier place.
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

/** The smallest count that cannot be true: the largest context windows are a thousandth of it. */
const absurdCount = 1_000_000_000;

/** Returns zero for the negative zero that JSON can express, and any other number as it is. */
const withoutSign = (count: number): number => (count === 0 ? 0 : count);

/** Reads counts of usage and notes whether one of them cannot be true. */
export class CountReader {
  clamped = false;

  /** Returns a count of tokens; undefined when none was reported. */
  read(value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= absurdCount)
      return withoutSign(value);
    this.clamped = true;
    if (typeof value !== "number" || Number.isNaN(value)) return undefined;
    return withoutSign(Math.min(absurdCount, Math.max(0, Math.round(value))));
  }

  /** Returns a part within its whole; any excess is cut off and noted. */
  within(part: number, whole: number): number {
    if (part <= whole) return part;
    this.clamped = true;
    return whole;
  }
}

/** Returns whether a value is absent. Null means absent, as everywhere in requests. */
export const isAbsent = (value: unknown): value is null | undefined =>
  value === null || value === undefined;

/**
 * Returns an event's data in one line: between members of JSON a line break is white space, and the
 * client would take it for the end of its line.
 */
export const inOneLine = (data: string): string =>
  data.includes("\n") ? data.replaceAll("\n", " ") : data;
