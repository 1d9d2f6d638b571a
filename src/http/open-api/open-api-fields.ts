import { isObject, fieldsOf, entriesOf } from "../../platform/kernel/json/json-members.ts";

type Json = Record<string, unknown>;

/** The document's descriptions and examples for fields whose schemas have none, by name. */
export interface FieldWords {
  descriptions: Readonly<Record<string, string>>;
  examples: Readonly<Record<string, unknown>>;
  /** Bodies of requests, by method and path. */
  requests?: Readonly<Record<string, unknown>>;
}

/**
 * The place of a field: its name, the field that contains it, and the component or path that
 * contains both.
 */
interface Place {
  name: string;
  parent: string | undefined;
  owner: string;
}

/** Returns the names under which a field may be listed, most specific first. */
const placedNames = ({ name, parent, owner }: Place): string[] => [
  ...(parent === undefined ? [] : [`${parent}.${name}`, `${parent}.*`]),
  `${owner}.${name}`,
];

/** Returns the entry under the most specific of a field's names. */
function closest<T>(words: Readonly<Record<string, T>>, place: Place): T | undefined {
  const found = [...placedNames(place), place.name].find((each) => Object.hasOwn(words, each));
  return found === undefined ? undefined : words[found];
}

const descriptionOf = (
  schema: Json,
  place: Place,
  { descriptions }: FieldWords,
): string | undefined =>
  "const" in schema ? `Always \`${String(schema["const"])}\`.` : closest(descriptions, place);

/** Returns the schema with a description of each of its fields, as far as one is known. */
export function describeFields(
  schema: unknown,
  at: { owner: string; parent?: string; words: FieldWords },
): unknown {
  const { owner, parent, words } = at;
  if (Array.isArray(schema)) return schema.map((each: unknown) => describeFields(each, at));
  if (!isObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, inner]): [string, unknown] => {
      if (key === "const" || key === "enum" || key === "default" || key === "examples")
        return [key, inner];
      if (key !== "properties") return [key, describeFields(inner, at)];
      const fields = Object.entries(fieldsOf(inner)).map(([name, field]): [string, unknown] => {
        const known = fieldsOf(describeFields(field, { owner, parent: name, words }));
        const description =
          known["description"] ?? descriptionOf(known, { name, parent, owner }, words);
        return [name, description === undefined ? known : { ...known, description }];
      });
      return [key, Object.fromEntries(fields)];
    }),
  );
}

const exampleMoment = "2026-11-22T09:30:00.000Z";

/** The depth of examples. Deeper fields are omitted where they are optional. */
const depthMax = 8;

/** The state of building an example. */
interface Making {
  place: Place;
  words: FieldWords;
  /** Components by name. */
  named: Readonly<Record<string, unknown>>;
  depth: number;
}

/** Returns a value that fits a schema, with the values of `examples` where fields have one. */
export function exampleOf(given: unknown, making: Making): unknown {
  const schema = fieldsOf(given);
  const known = closest(making.words.examples, making.place);
  if ("const" in schema) return schema["const"];
  const [first] = entriesOf(schema["examples"]);
  if (first !== undefined) return first;
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    const place = { ...making.place, parent: undefined, owner: name };
    return exampleOf(making.named[name], { ...making, place, depth: making.depth + 1 });
  }
  const variants = entriesOf(schema["anyOf"] ?? schema["oneOf"]);
  if (variants.length > 0) return variantExample(variants, { making, known });
  if (known !== undefined && fits(known, schema)) return known;
  return plainExample(schema, making);
}

/**
 * Returns an example of the first variant that is not null; null where nothing better is known of a
 * nullable field.
 */
function variantExample(
  variants: readonly unknown[],
  { making, known }: { making: Making; known: unknown },
): unknown {
  const isNull = (variant: unknown): boolean => fieldsOf(variant)["type"] === "null";
  const fitting = variants.find((variant) => known !== undefined && fits(known, fieldsOf(variant)));
  if (fitting !== undefined) return known;
  if (variants.some(isNull)) return null;
  return exampleOf(variants[0], making);
}

/**
 * Returns whether a value has the type of a plain schema, and is among its enumerated values where
 * it has some.
 */
function fits(value: unknown, { type, enum: words }: Json): boolean {
  if (Array.isArray(words)) return words.includes(value);
  const is = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return entriesOf(Array.isArray(type) ? type : [type]).some(
    (each) => each === is || (each === "integer" && Number.isInteger(value)),
  );
}

function plainExample(schema: Json, making: Making): unknown {
  const [word] = entriesOf(schema["enum"]);
  if (word !== undefined) return word;
  const type = Array.isArray(schema["type"]) ? entriesOf(schema["type"])[0] : schema["type"];
  if (type === "object" || isObject(schema["properties"])) return objectExample(schema, making);
  if (type === "array") {
    const { items } = schema;
    const isEmpty = items === undefined || schema["maxItems"] === 0 || making.depth > depthMax;
    return isEmpty ? [] : [exampleOf(items, { ...making, depth: making.depth + 1 })];
  }
  if (type === "string") return textExample(schema, making.place);
  if (type === "integer" || type === "number") return Math.max(0, Number(schema["minimum"] ?? 0));
  return type === "boolean" ? false : null;
}

function objectExample(schema: Json, making: Making): Json {
  const required = new Set(entriesOf(schema["required"]));
  const {
    place: { name: parent, owner },
  } = making;
  const isMeant = (name: string): boolean =>
    placedNames({ name, parent: parent === "" ? undefined : parent, owner }).some((each) =>
      Object.hasOwn(making.words.examples, each),
    );
  const fields = Object.entries(fieldsOf(schema["properties"])).filter(
    ([name]) => required.has(name) || isMeant(name),
  );
  return Object.fromEntries(
    fields.map(([name, field]) => [
      name,
      exampleOf(field, {
        ...making,
        place: { name, parent: parent === "" ? undefined : parent, owner },
        depth: making.depth + 1,
      }),
    ]),
  );
}

function textExample({ format, pattern }: Json, { name }: Place): string {
  if (name.endsWith("_at") || format === "date-time") return exampleMoment;
  if (format === "date" || name === "date") return exampleMoment.slice(0, 10);
  if (format === "uri" || name === "url" || name.endsWith("_url") || name.endsWith("_uri"))
    return "https://gateway.example.com/";
  return typeof pattern === "string" ? "example" : name === "" ? "text" : name.replaceAll("_", " ");
}
