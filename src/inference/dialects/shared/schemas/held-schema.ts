import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { EncodePlace } from "../encode-state.ts";
import { asArray, asObject } from "../wire-fields.ts";

/** A JSON Schema in the form to which Claude can be held. */
export interface HeldSchema {
  schema: JsonObject;
  /** Keywords that are described to the model instead of enforced, each once. */
  described: readonly string[];
}

/**
 * Returns a schema as Claude's servers compile it, with every keyword that they refuse written into
 * the description, as Anthropic's own SDK does (`@anthropic-ai/sdk` 1.11, transform-json-schema).
 * Undefined for a schema to which no model can be held: one that refers to itself or to another
 * document, or whose objects may have any member.
 */
export function heldSchema(schema: JsonObject): HeldSchema | undefined {
  if (!canBeHeld(schema, schema, [])) return undefined;
  const described = new Set<string>();
  return { schema: held(schema, described), described: [...described] };
}

/** Formats of strings that are enforced. */
const formats = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
]);

const schemaLists = ["anyOf", "oneOf", "allOf"];

/** Returns the schemas directly within a schema, apart from its definitions. */
const partsOf = (schema: JsonObject): JsonObject[] =>
  [
    schema.items,
    ...schemaLists.flatMap((key) => asArray(schema[key]) ?? []),
    ...Object.values(asObject(schema.properties) ?? {}),
  ]
    .map(asObject)
    .filter((value) => value !== undefined);

/** Returns whether a schema has a closed form; `open` are the references that lead to it. */
function canBeHeld(schema: JsonObject, root: JsonObject, open: readonly string[]): boolean {
  const { $ref: ref } = schema;
  if (typeof ref === "string") {
    const target = open.includes(ref) ? undefined : referred(root, ref);
    return target !== undefined && canBeHeld(target, root, [...open, ref]);
  }
  return !hasFreeMembers(schema) && partsOf(schema).every((part) => canBeHeld(part, root, open));
}

/** Returns the definition that a reference within the schema names. */
export function referred(root: JsonObject, ref: string): JsonObject | undefined {
  const [, group, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(ref) ?? [];
  return group === undefined || name === undefined
    ? undefined
    : asObject(asObject(root[group])?.[name]);
}

/** Returns whether an object's members are not all named, so that closing it would empty it. */
function hasFreeMembers(schema: JsonObject): boolean {
  if (schema.patternProperties !== undefined) return true;
  const isObject = schema.type === "object" || schema.properties !== undefined;
  if (!isObject) return isUntyped(schema);
  const others = schema.additionalProperties;
  if (asObject(others) !== undefined) return true;
  return Object.keys(asObject(schema.properties) ?? {}).length === 0 && others === true;
}

/** Returns whether a schema accepts any value, which has no closed form either. */
const isUntyped = (schema: JsonObject): boolean =>
  schema.type === undefined &&
  ["enum", "const", ...schemaLists].every((key) => schema[key] === undefined);

/** Keywords that say nothing about a value. */
const silent = new Set(["$schema", "$id", "$comment", "title", "description"]);

/** Returns the closed form of a schema, and notes which keywords were moved. */
function held(schema: JsonObject, described: Set<string>): JsonObject {
  const definitions = mapsOf(schema, ["$defs", "definitions"], described);
  if (schema.$ref !== undefined) return { ...definitions, $ref: schema.$ref };
  const kept: Record<string, JsonValue | undefined> = { ...definitions };
  const moved: Record<string, JsonValue | undefined> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || key in definitions) continue;
    if (!keep(key, value, { schema, kept, described })) moved[key] = value;
  }
  if (isObjectSchema(schema)) {
    kept["type"] ??= "object";
    kept["properties"] ??= {};
    kept["additionalProperties"] = false;
  }
  const description = withRules(schema, moved);
  for (const key of Object.keys(moved)) described.add(key);
  return { ...kept, ...(description !== undefined && { description }) };
}

const isObjectSchema = (schema: JsonObject): boolean =>
  schema.type === "object" || (schema.type === undefined && schema.properties !== undefined);

function mapsOf(
  schema: JsonObject,
  keys: readonly string[],
  described: Set<string>,
): Record<string, JsonObject> {
  const maps: Record<string, JsonObject> = {};
  for (const key of keys) {
    const map = asObject(schema[key]);
    if (map !== undefined) maps[key] = heldEach(map, described);
  }
  return maps;
}

const heldEach = (map: JsonObject, described: Set<string>): JsonObject =>
  Object.fromEntries(
    Object.entries(map).map(([name, value]) => {
      const inner = asObject(value);
      return [name, inner === undefined ? value : held(inner, described)];
    }),
  );

const heldList = (value: JsonValue, described: Set<string>): JsonValue =>
  (asArray(value) ?? []).map((entry) => {
    const inner = asObject(entry);
    return inner === undefined ? entry : held(inner, described);
  });

/** Keeps a keyword that is enforced; returns false for one that has to be described. */
function keep(
  key: string,
  value: JsonValue,
  {
    schema,
    kept,
    described,
  }: {
    schema: JsonObject;
    kept: Record<string, JsonValue | undefined>;
    described: Set<string>;
  },
): boolean {
  if (silent.has(key)) {
    if (key === "title") kept["title"] = value;
    return true;
  }
  if (key === "additionalProperties") return value !== true;
  const kind = enforced(key, value, schema);
  if (kind === undefined) return false;
  if (kind === "map") kept[key] = heldEach(asObject(value) ?? {}, described);
  else if (kind === "list") {
    // Claude is held to one of several forms, not to exactly one.
    if (key === "oneOf") described.add(key);
    kept[key === "oneOf" ? "anyOf" : key] = heldList(value, described);
  } else if (kind === "schema") kept[key] = held(asObject(value) ?? {}, described);
  else kept[key] = value;
  return true;
}

/** Returns how an enforced keyword's value is kept; undefined for other keywords. */
function enforced(
  key: string,
  value: JsonValue,
  schema: JsonObject,
): "as-is" | "map" | "list" | "schema" | undefined {
  switch (key) {
    case "type":
    case "enum":
    case "const":
    case "required":
      return "as-is";
    case "properties":
      return "map";
    case "anyOf":
    case "allOf":
      return "list";
    case "oneOf":
      return schema.anyOf === undefined ? "list" : undefined;
    case "items":
      return asObject(value) === undefined ? undefined : "schema";
    case "format":
      return typeof value === "string" && formats.has(value) ? "as-is" : undefined;
    case "minItems":
      return value === 0 || value === 1 ? "as-is" : undefined;
    default:
      return undefined;
  }
}

/** Returns the description with the moved keywords behind it, in the words of Anthropic's SDK. */
export function withRules(schema: JsonObject, moved: JsonObject): string | undefined {
  const written = typeof schema.description === "string" ? schema.description : undefined;
  const rules = Object.entries(moved).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  if (rules.length === 0) return written;
  const note = `{${rules.join(", ")}}`;
  return written === undefined ? note : `${written}\n\n${note}`;
}

/** Declares the keywords of a schema that are described to the model instead of enforced. */
export function loseDescribed({ described }: HeldSchema, place: EncodePlace): void {
  if (described.length > 0) place.lose(`described, not enforced: ${described.join(", ")}`);
}
