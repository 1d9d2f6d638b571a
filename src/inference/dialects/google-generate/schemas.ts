import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asArray, asObject, asString } from "../shared/wire-fields.ts";

/** Members of a schema that contain one schema, a list of them, or one by name. */
const innerSchema: ReadonlySet<string> = new Set(["items", "additionalProperties", "not"]);
const innerLists: ReadonlySet<string> = new Set([
  "anyOf",
  "any_of",
  "oneOf",
  "allOf",
  "prefixItems",
]);
const innerMaps: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);

/** Google's spellings of JSON Schema's members in snake_case. */
const spellings: Readonly<Record<string, string>> = {
  any_of: "anyOf",
  min_items: "minItems",
  max_items: "maxItems",
  min_length: "minLength",
  max_length: "maxLength",
  min_properties: "minProperties",
  max_properties: "maxProperties",
};

/** Members of OpenAPI's subset without an equivalent in JSON Schema. */
const dropped: ReadonlySet<string> = new Set(["nullable", "propertyOrdering", "property_ordering"]);

/** Members whose numbers Google writes as text, as Protocol Buffers do for 64 bits. */
const counts = /^(?:min|max)(?:Items|Length|Properties)$/;

/**
 * Returns a schema as JSON Schema: OpenAPI's subset as Google writes it has types in upper case and
 * `nullable`. Clients write upper-case types into the fields for JSON Schema too (gemini-cli 0.61).
 */
export function jsonSchema(schema: JsonObject): JsonObject {
  const written: Record<string, JsonValue | undefined> = {};
  for (const key in schema) {
    if (dropped.has(key)) continue;
    const name = spellings[key] ?? key;
    written[name] = memberOf(name, schema[key]);
  }
  return schema.nullable === true ? nullable(written) : written;
}

function memberOf(name: string, value: JsonValue | undefined): JsonValue | undefined {
  if (name === "type") return typeOf(value);
  if (counts.test(name) && typeof value === "string" && /^\d+$/.test(value)) return Number(value);
  const object = asObject(value);
  if (innerSchema.has(name)) return object === undefined ? value : jsonSchema(object);
  if (innerMaps.has(name) && object !== undefined)
    return Object.fromEntries(
      Object.entries(object).map(([key, inner]) => [key, schemaOf(inner)] as const),
    ) as JsonObject;
  if (innerLists.has(name)) return asArray(value)?.map((inner) => schemaOf(inner) ?? null);
  return value;
}

function schemaOf(value: JsonValue | undefined): JsonValue | undefined {
  const object = asObject(value);
  return object === undefined ? value : jsonSchema(object);
}

function typeOf(value: JsonValue | undefined): JsonValue | undefined {
  const list = asArray(value);
  if (list !== undefined)
    return list.map((one) => (typeof one === "string" ? one.toLowerCase() : one));
  const word = asString(value)?.toLowerCase();
  // An unspecified type allows any.
  return word === "type_unspecified" ? undefined : (word ?? value);
}

function nullable(schema: Record<string, JsonValue | undefined>): JsonObject {
  const { type } = schema;
  const values = asArray(schema.enum);
  if (typeof type !== "string") return { anyOf: [schema, { type: "null" }] };
  return {
    ...schema,
    type: [type, "null"],
    ...(values !== undefined && !values.includes(null) && { enum: [...values, null] }),
  };
}
