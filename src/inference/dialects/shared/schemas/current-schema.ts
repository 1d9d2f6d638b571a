import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import { asArray, asObject } from "../wire-fields.ts";

/** Keywords whose values are schemas by name, lists of schemas, or one schema. */
const maps = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);
const lists = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const singles = new Set([
  "items",
  "additionalProperties",
  "contains",
  "propertyNames",
  "not",
  "if",
  "then",
  "else",
]);

/** Keywords that may be null. */
const values = new Set(["const", "default", "enum", "example", "examples"]);

/** What an upstream asks of schemas. */
interface SchemaNeeds {
  /** Whether every list needs `items`. */
  items: boolean;
}

/**
 * Returns a schema in the draft that Anthropic and OpenAI read (2020-12), for tools of older ones:
 * both refuse the whole request for a list in `items` and for a bound that is true or false, and
 * OpenAI for a list without `items`. Keywords without a value are left out. The same object where
 * nothing has to change. Sources: Dokploy/mcp#74, hyperdxio/hyperdx#2925 (2026-08),
 * heypinchy/pinchy#380 (2026-05), camel-ai/camel#393.
 */
export function currentSchema(schema: JsonObject, needs: SchemaNeeds): JsonObject {
  const written: Record<string, JsonValue | undefined> = {};
  let isChanged = false;
  for (const key in schema) {
    const value = schema[key];
    const current = currentMember(key, value, needs);
    if (current !== value) isChanged = true;
    if (current !== undefined) written[key] = current;
  }
  for (const fit of [fitTuple, fitBounds, ...(needs.items ? [fitItems] : [])])
    if (fit(written)) isChanged = true;
  return isChanged ? written : schema;
}

function currentMember(
  key: string,
  value: JsonValue | undefined,
  needs: SchemaNeeds,
): JsonValue | undefined {
  if (value === null) return values.has(key) ? value : undefined;
  // What the drafts before the fourth wrote into the member itself.
  if (key === "required") return typeof value === "boolean" ? undefined : value;
  if (singles.has(key) || lists.has(key)) return currentOf(value, needs);
  const map = maps.has(key) ? asObject(value) : undefined;
  if (map === undefined) return value;
  const entries = Object.entries(map).map(([name, one]) => [name, currentOf(one, needs)] as const);
  return entries.some(([name, one]) => one !== map[name]) ? Object.fromEntries(entries) : value;
}

/** Returns a schema or a list of schemas; any other value as it is. */
function currentOf(value: JsonValue | undefined, needs: SchemaNeeds): JsonValue | undefined {
  const list = asArray(value);
  if (list !== undefined) {
    const current = list.map((one) => currentOf(one, needs) ?? null);
    return current.some((one, index) => one !== list[index]) ? current : value;
  }
  const schema = asObject(value);
  return schema === undefined ? value : currentSchema(schema, needs);
}

type Written = Record<string, JsonValue | undefined>;

/** Writes a tuple, which was a list in `items`. */
function fitTuple(schema: Written): boolean {
  const tuple = asArray(schema["items"]);
  if (tuple === undefined) return false;
  const { additionalItems: further } = schema;
  schema["prefixItems"] = tuple;
  schema["items"] = asObject(further);
  if (further === false) schema["maxItems"] ??= tuple.length;
  delete schema["additionalItems"];
  if (tuple.length === 0) delete schema["prefixItems"];
  return true;
}

/** Writes bounds that were a switch beside another bound. */
function fitBounds(schema: Written): boolean {
  let isChanged = false;
  for (const [exclusive, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    const isExclusive = schema[exclusive];
    if (typeof isExclusive !== "boolean") continue;
    isChanged = true;
    delete schema[exclusive];
    if (!isExclusive || typeof schema[bound] !== "number") continue;
    schema[exclusive] = schema[bound];
    delete schema[bound];
  }
  return isChanged;
}

/** Writes the items of a list, which may be any. */
function fitItems(schema: Written): boolean {
  const { type } = schema;
  const isList = type === "array" || asArray(type)?.includes("array") === true;
  if (!isList || schema["items"] !== undefined) return false;
  schema["items"] = {};
  return true;
}
