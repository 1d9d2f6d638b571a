import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asArray, asObject } from "../request-fields.ts";

/** A tool's schema as Anthropic demands it: an object with properties, even where there are none. */
export function objectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  if ("type" in schema && "properties" in schema) return schema;
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  return { type: "object", ...(!composed && { properties: {} }), ...schema };
}

const schemaLists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const schemaMaps = ["properties", "$defs", "definitions"];

/** The schema with `additionalProperties: false` on every object that does not say, which Anthropic requires of strict ones. */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: Record<string, JsonValue | undefined> = {};
  for (const [key, value] of Object.entries(schema)) closed[key] = closedMember(key, value);
  const isObject =
    schema.type === "object" || (schema.type === undefined && "properties" in schema);
  if (isObject && schema.additionalProperties === undefined) closed.additionalProperties = false;
  return closed;
}

function closedMember(key: string, value: JsonValue | undefined): JsonValue | undefined {
  const list = schemaLists.includes(key) ? asArray(value) : undefined;
  if (list !== undefined) return list.map(closedValue);
  const object = asObject(value);
  if (object === undefined) return value;
  if (key === "items") return closedSchema(object);
  if (!schemaMaps.includes(key)) return value;
  return Object.fromEntries(
    Object.entries(object).map(([name, one]) => [name, one === undefined ? one : closedValue(one)]),
  );
}

const closedValue = (value: JsonValue): JsonValue => {
  const object = asObject(value);
  return object === undefined ? value : closedSchema(object);
};
