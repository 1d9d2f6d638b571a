import type { JsonObject } from "../canonical/json.ts";

/** The schema of a tool's arguments as an object with properties, which servers insist on even where there are none. */
export function objectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  if (composed || ("type" in schema && "properties" in schema)) return schema;
  return { type: "object", properties: {}, ...schema };
}
