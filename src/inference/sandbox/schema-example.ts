type Schema = Record<string, unknown>;

interface Walk {
  root: unknown;
  /** Property whose value is being made up; names the sample texts. */
  name: string;
  depth: number;
}

/** Beyond this depth optional parts are left out, so that recursive schemas come to an end. */
const comfortableDepth = 5;
/** Beyond this depth nothing can satisfy the schema any more; null stands in. */
const deepestDepth = 40;

const sampleByFormat: Readonly<Record<string, string>> = {
  "date-time": "2026-01-01T00:00:00Z",
  date: "2026-01-01",
  time: "00:00:00Z",
  duration: "PT1S",
  email: "simulated@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/simulated",
  url: "https://example.com/simulated",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/** Texts tried in turn against a `pattern`; a schema that none of them satisfies gets the first. */
const patternSamples = [
  "simulated",
  "SIMULATED",
  "Simulated",
  "s",
  "S",
  "1",
  "12",
  "2026",
  "00000",
  "SIM-1",
  "sim_1",
];

const isRecord = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/**
 * A value that satisfies a JSON Schema, always the same for the same schema. Reads JSON Schema
 * 2020-12 and its older spellings, and Gemini's upper-case type names.
 */
export function exampleOfSchema(schema: unknown): unknown {
  return exampleAt(schema, { root: schema, name: "value", depth: 0 });
}

function exampleAt(schema: unknown, walk: Walk): unknown {
  if (walk.depth > deepestDepth) return null;
  if (!isRecord(schema)) return `simulated ${walk.name}`;
  if (typeof schema["$ref"] === "string") {
    return exampleAt(referenced(schema["$ref"], walk.root), { ...walk, depth: walk.depth + 1 });
  }
  for (const fixed of ["const", "default"]) if (fixed in schema) return schema[fixed];
  for (const sampled of ["enum", "examples"]) {
    const [first] = listOf(schema[sampled]);
    if (first !== undefined) return first;
  }
  return exampleOfType(combined(schema, walk), walk);
}

function exampleOfType(schema: Schema, walk: Walk): unknown {
  if ("const" in schema || "$ref" in schema || "enum" in schema) return exampleAt(schema, walk);
  switch (typeOf(schema)) {
    case "object":
      return exampleObject(schema, walk);
    case "array":
      return exampleArray(schema, walk);
    case "string":
      return exampleString(schema, walk.name);
    case "number":
      return exampleNumber(schema, 0.5);
    case "integer":
      return exampleNumber(schema, 1);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return `simulated ${walk.name}`;
  }
}

/** Folds `allOf` and one branch of `anyOf` or `oneOf` into the schema that holds them. */
function combined(schema: Schema, walk: Walk): Schema {
  const union = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])];
  const parts = [...listOf(schema["allOf"]), ...(union.length > 0 ? [branchOf(union, walk)] : [])];
  if (parts.length === 0) return schema;
  const { allOf: _allOf, anyOf: _anyOf, oneOf: _oneOf, ...rest } = schema;
  return parts.reduce<Schema>((whole, part) => merged(whole, resolved(part, walk)), rest);
}

function resolved(part: unknown, walk: Walk): Schema {
  if (walk.depth > deepestDepth) return {};
  let schema = part;
  for (
    let hops = 0;
    isRecord(schema) && typeof schema["$ref"] === "string" && hops < 16;
    hops += 1
  ) {
    schema = referenced(schema["$ref"], walk.root);
  }
  return isRecord(schema) ? combined(schema, { ...walk, depth: walk.depth + 1 }) : {};
}

function merged(left: Schema, right: Schema): Schema {
  const properties = { ...(left["properties"] ?? {}), ...(right["properties"] ?? {}) };
  const required = [...listOf(left["required"]), ...listOf(right["required"])];
  return {
    ...left,
    ...right,
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

/** The first branch that says something; deep down the null branch, which ends a recursion. */
function branchOf(union: unknown[], walk: Walk): unknown {
  const isNull = (branch: unknown): boolean => isRecord(branch) && typeOf(branch) === "null";
  if (walk.depth > comfortableDepth) return union.find(isNull) ?? union[0];
  return union.find((branch) => !isNull(branch)) ?? union[0];
}

function typeOf(schema: Schema): string | undefined {
  const types = listOf(schema["type"]).length > 0 ? listOf(schema["type"]) : [schema["type"]];
  const named = types.filter((type) => typeof type === "string").map((type) => type.toLowerCase());
  const declared = named.find((type) => type !== "null") ?? named[0];
  if (declared !== undefined) return declared;
  if ("properties" in schema) return "object";
  return "items" in schema || "prefixItems" in schema ? "array" : undefined;
}

function exampleObject(schema: Schema, walk: Walk): Record<string, unknown> {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = listOf(schema["required"]).filter((name) => typeof name === "string");
  const deep = walk.depth > comfortableDepth;
  const names = required.length > 0 || deep ? required : Object.keys(properties);
  return Object.fromEntries(
    names.map((name) => [
      name,
      exampleAt(properties[name], { ...walk, name, depth: walk.depth + 1 }),
    ]),
  );
}

function exampleArray(schema: Schema, walk: Walk): unknown[] {
  const prefix = listOf(schema["prefixItems"]);
  const most = numberOf(schema["maxItems"]) ?? Number.POSITIVE_INFINITY;
  const wished = numberOf(schema["minItems"]) ?? (walk.depth > comfortableDepth ? 0 : 1);
  const length = Math.min(Math.max(wished, prefix.length), most);
  return Array.from({ length }, (_, index) =>
    exampleAt(prefix[index] ?? schema["items"], { ...walk, depth: walk.depth + 1 }),
  );
}

function exampleString(schema: Schema, name: string): string {
  const format = schema["format"];
  const formatted = typeof format === "string" ? sampleByFormat[format] : undefined;
  if (formatted !== undefined) return formatted;
  if (typeof schema["pattern"] === "string") return sampleMatching(schema["pattern"]);
  const text = `simulated ${name}`.padEnd(numberOf(schema["minLength"]) ?? 0, "x");
  return text.slice(0, numberOf(schema["maxLength"]) ?? text.length);
}

function sampleMatching(pattern: string): string {
  try {
    const expression = new RegExp(pattern, "u");
    return patternSamples.find((sample) => expression.test(sample)) ?? "simulated";
  } catch {
    // The pattern is none of JavaScript's: the caller's validator is the judge of it, not the
    // sandbox.
    return "simulated";
  }
}

/** The allowed number nearest to 1; `step` is how far it keeps from an exclusive bound. */
function exampleNumber(schema: Schema, step: number): number {
  const above = numberOf(schema["exclusiveMinimum"]);
  const below = numberOf(schema["exclusiveMaximum"]);
  const least = Math.max(
    numberOf(schema["minimum"]) ?? -Infinity,
    above === undefined ? -Infinity : above + step,
  );
  const most = Math.min(
    numberOf(schema["maximum"]) ?? Infinity,
    below === undefined ? Infinity : below - step,
  );
  const multiple = numberOf(schema["multipleOf"]);
  const nearest = Math.min(Math.max(1, least), most);
  if (multiple === undefined || multiple <= 0) return nearest;
  const upward = Math.ceil(nearest / multiple) * multiple;
  return upward <= most ? upward : Math.floor(nearest / multiple) * multiple;
}

/** The part of the document that `#/a/b` (RFC 6901) names; other references say nothing here. */
function referenced(reference: string, root: unknown): unknown {
  const steps = reference
    .replace(/^#\/?/, "")
    .split("/")
    .filter((step) => step !== "");
  return steps.reduce<unknown>((value, step) => {
    const key = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) return value[Number(key)];
    return isRecord(value) ? value[key] : undefined;
  }, root);
}
