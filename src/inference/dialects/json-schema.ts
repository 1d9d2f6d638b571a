import type { JsonObject, JsonValue } from "../canonical/json.ts";
import { asArray, asObject, unsupportedContent } from "./wire-fields.ts";
import type { CanonicalRequest } from "../canonical/request.ts";

/**
 * A tool's schema as Claude's servers demand it: an object with properties, even where there are none.
 */
export function typedObjectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  if ("type" in schema && "properties" in schema) return schema;
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  return { type: "object", ...(!composed && { properties: {} }), ...schema };
}

const schemaLists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const schemaMaps = ["properties", "$defs", "definitions"];

/**
 * The schema with `additionalProperties: false` on every object that does not say, which Anthropic
 * requires of strict ones.
 */
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

/**
 * The schema of a tool's arguments as an object with properties, which servers insist on even where
 * there are none.
 */
export function objectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  if (composed || ("type" in schema && "properties" in schema)) return schema;
  return { type: "object", properties: {}, ...schema };
}

/**
 * Refuses what a dialect of one plain answer would silently answer otherwise: several answers, log
 * probabilities, and output that is no text. Throws `GatewayError` `unsupported_content`.
 */
export function refuseOtherAnswers(request: CanonicalRequest): void {
  const { choiceCount = 1, logProbabilities, modalities = [] } = request;
  if (choiceCount > 1)
    throw unsupportedContent(
      "n",
      "asks for several answers, and this model's provider gives one; leave it out.",
    );
  if (logProbabilities !== undefined) {
    throw unsupportedContent(
      "logprobs",
      "asks for log probabilities, which this model's provider does not tell; leave it out.",
    );
  }
  const other = modalities.find((modality) => modality !== "text");
  if (other !== undefined)
    throw unsupportedContent(
      "modalities",
      `asks for ${other}, and this model answers in text; leave it out.`,
    );
}

/** The instruction for JSON, for a model that cannot be held to a format or to this schema. */
export function jsonAdvice(schema: JsonObject | undefined): string {
  const rule =
    schema === undefined ? "" : ` It must follow this JSON Schema: ${JSON.stringify(schema)}`;
  return `Answer with one JSON object and nothing else, without a code fence.${rule}`;
}
