import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import { asArray, asObject } from "../../shared/wire-fields.ts";

/**
 * Returns a schema without what Moonshot refuses: a `$ref` stands alone, and the items of an array
 * are one schema. The same object where nothing has to change. Source: sst/opencode,
 * provider/transform.ts (2026-11).
 */
export function plainSchema(schema: JsonObject): JsonObject {
  const { $ref: reference } = schema;
  if (typeof reference === "string")
    return Object.keys(schema).length > 1 ? { $ref: reference } : schema;
  let isChanged = false;
  const entries = Object.entries(schema).map(([name, value]): [string, JsonValue | undefined] => {
    const plain = plainMember(name, value);
    if (plain !== value) isChanged = true;
    return [name, plain];
  });
  return isChanged ? Object.fromEntries(entries) : schema;
}

/** Members whose values are schemas by name, and those that are lists of schemas. */
const schemasByName: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);
const schemaLists: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);

function plainMember(name: string, value: JsonValue | undefined): JsonValue | undefined {
  if (name === "items" || name === "additionalProperties") return plainItems(value);
  if (schemaLists.has(name)) return plainList(value);
  const inner = schemasByName.has(name) ? asObject(value) : undefined;
  if (inner === undefined) return value;
  const entries = Object.entries(inner).map(([key, one]) => [key, plainOne(one)] as const);
  return entries.some(([key, one]) => one !== inner[key]) ? Object.fromEntries(entries) : value;
}

const plainOne = (value: JsonValue | undefined): JsonValue | undefined => {
  const schema = asObject(value);
  return schema === undefined ? value : plainSchema(schema);
};

function plainList(value: JsonValue | undefined): JsonValue | undefined {
  const list = asArray(value);
  if (list === undefined) return value;
  const plain = list.map((one) => plainOne(one) ?? null);
  return plain.some((one, index) => one !== list[index]) ? plain : value;
}

/** Returns the schema of all items; those of a tuple are its alternatives. */
function plainItems(value: JsonValue | undefined): JsonValue | undefined {
  const tuple = asArray(value);
  if (tuple === undefined) return plainOne(value);
  const [only, ...more] = tuple.map((one) => plainOne(one) ?? null);
  return more.length === 0 ? (only ?? {}) : { anyOf: [only ?? {}, ...more] };
}
