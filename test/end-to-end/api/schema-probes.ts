import { Compile } from "typebox/schema";

/** A JSON object of which nothing more is known. */
export type Json = Record<string, unknown>;

/** One body that differs from a valid one in a single field. */
export interface Probe {
  /** The field as callers write it, such as `messages[0].content`. */
  path: string;
  value: unknown;
  body: Json;
  /** Whether the published schema allows the body. */
  fits: boolean;
}

/** How deep fields are nested that are probed. */
const depthMax = 7;

/** Marks a field that is left out. */
const absent = Symbol("absent");

const candidates: readonly unknown[] = [
  absent,
  null,
  true,
  0,
  -1,
  1.5,
  "",
  "surely-none",
  "x".repeat(300),
  [],
  [7],
  {},
];

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const objectOf = (value: unknown): Json => (isObject(value) ? value : {});

/** A field in a body: what it is called, and the body with another value in its place. */
interface Place {
  path: string;
  depth: number;
  /** An entry of a list or a record, which cannot be left out. */
  isEntry?: true;
  bodyWith(value: unknown): Json;
}

/** The request schema of an operation with the components that it refers to. */
export class ProbedSchema {
  private readonly schema: Json;
  private readonly components: Json;
  private readonly check: (value: unknown) => boolean;
  /** The checks of variants, each of which is met at many places. */
  private readonly variantChecks = new WeakMap<object, (value: unknown) => boolean>();

  constructor(schema: Json, components: Json) {
    this.schema = schema;
    this.components = components;
    const compiled = Compile({ ...schema, components: { schemas: components } });
    this.check = (value) => compiled.Check(value);
  }

  fits(body: unknown): boolean {
    return this.check(body);
  }

  /** Bodies that differ from a valid one in one field each, for every field that the schema names. */
  probesOf(base: Json): Probe[] {
    const found: Probe[] = [];
    const place = { path: "", depth: 0, bodyWith: (value: unknown) => objectOf(value) };
    this.visit(this.schema, { value: base, place, found });
    return [...new Map(found.map((probe) => [JSON.stringify(probe.body), probe])).values()];
  }

  /** The value that a schema's minimum asks for. */
  example(given: unknown): unknown {
    const schema = this.resolved(given);
    if ("const" in schema) return schema["const"];
    if ("default" in schema) return schema["default"];
    const [word] = listOf(schema["enum"]);
    if (word !== undefined) return word;
    const [variant] = this.variants(schema);
    if (variant !== undefined && isObject(schema["properties"]))
      return this.exampleObject(this.joined(schema, objectOf(variant)));
    if (variant !== undefined)
      return this.example({ ...schema, anyOf: undefined, oneOf: undefined, ...objectOf(variant) });
    const types = listOf(schema["type"]);
    switch (
      types[0] ??
      schema["type"] ??
      (schema["properties"] === undefined ? "string" : "object")
    ) {
      case "object":
        return this.exampleObject(schema);
      case "array":
        return Array.from({ length: Number(schema["minItems"] ?? 0) }, () =>
          this.example(schema["items"]),
        );
      case "integer":
      case "number":
        return Math.max(
          Number(schema["minimum"] ?? 1),
          Number(schema["exclusiveMinimum"] ?? 0) + 1,
        );
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return this.exampleText(schema);
    }
  }

  private exampleText({ format, minLength, maxLength, not }: Json): string {
    if (not !== undefined) return "another_kind";
    if (format === "date-time") return "2026-11-22T09:30:00.000Z";
    if (format === "uri") return "https://example.com/";
    return "text".padEnd(Number(minLength ?? 0), "x").slice(0, Number(maxLength ?? 1_000));
  }

  /** An object with the members that one of its variants asks for besides. */
  private joined(schema: Json, variant: Json): Json {
    return {
      ...schema,
      properties: { ...objectOf(schema["properties"]), ...objectOf(variant["properties"]) },
      required: [...listOf(schema["required"]), ...listOf(variant["required"])],
    };
  }

  private exampleObject(schema: Json): Json {
    const properties = objectOf(schema["properties"]);
    return Object.fromEntries(
      listOf(schema["required"]).map((name) => [
        String(name),
        this.example(properties[String(name)]),
      ]),
    );
  }

  private resolved(schema: unknown): Json {
    const { $ref: reference, ...rest } = objectOf(schema);
    if (typeof reference !== "string") return rest;
    return {
      ...this.resolved(this.components[reference.slice(reference.lastIndexOf("/") + 1)]),
      ...rest,
    };
  }

  private variants(schema: Json): readonly unknown[] {
    return listOf(schema["anyOf"] ?? schema["oneOf"]);
  }

  private visit(
    given: unknown,
    { value, place, found }: { value: unknown; place: Place; found: Probe[] },
  ): void {
    if (place.depth > depthMax) return;
    const schema = this.resolved(given);
    for (const part of listOf(schema["allOf"])) this.visit(part, { value, place, found });
    for (const variant of isObject(schema["properties"]) ? [] : this.variants(schema)) {
      const own = this.matches(variant, value) ? value : this.example(variant);
      this.visit(variant, { value: own, place, found });
    }
    if (isObject(schema["properties"]))
      this.visitObject(schema, {
        value: isObject(value) ? value : this.exampleObject(schema),
        place,
        found,
      });
    if (isObject(schema["items"])) this.visitItem(schema["items"], { value, place, found });
    if (isObject(schema["additionalProperties"]) && !isObject(schema["properties"]))
      this.visitMember(schema["additionalProperties"], { place, found });
  }

  private matches(given: unknown, value: unknown): boolean {
    const variant = objectOf(given);
    let check = this.variantChecks.get(variant);
    if (check === undefined) {
      const compiled = Compile({ ...variant, components: { schemas: this.components } });
      check = (each) => compiled.Check(each);
      this.variantChecks.set(variant, check);
    }
    return check(value);
  }

  private visitObject(
    schema: Json,
    { value, place, found }: { value: Json; place: Place; found: Probe[] },
  ): void {
    for (const [name, field] of Object.entries(objectOf(schema["properties"]))) {
      if ("const" in objectOf(field) && place.depth > 0) continue;
      const inner: Place = {
        path: place.path === "" ? name : `${place.path}.${name}`,
        depth: place.depth + 1,
        bodyWith: (given) => {
          const { [name]: _, ...others } = value;
          return place.bodyWith(given === absent ? others : { ...others, [name]: given });
        },
      };
      this.probe(inner, found);
      this.visit(field, { value: value[name] ?? this.example(field), place: inner, found });
    }
  }

  private visitItem(
    items: Json,
    { value, place, found }: { value: unknown; place: Place; found: Probe[] },
  ): void {
    const [first = this.example(items), ...others] = listOf(value);
    const inner: Place = {
      path: `${place.path}[0]`,
      isEntry: true,
      depth: place.depth + 1,
      bodyWith: (given) => place.bodyWith([given, ...others]),
    };
    this.probe(inner, found);
    this.visit(items, { value: first, place: inner, found });
  }

  private visitMember(member: Json, { place, found }: { place: Place; found: Probe[] }): void {
    const inner: Place = {
      path: `${place.path}.member`,
      isEntry: true,
      depth: place.depth + 1,
      bodyWith: (given) => place.bodyWith({ member: given }),
    };
    this.probe(inner, found);
    this.visit(member, { value: this.example(member), place: inner, found });
  }

  private probe(place: Place, found: Probe[]): void {
    for (const value of candidates) {
      if (value === absent && place.isEntry) continue;
      const body = place.bodyWith(value);
      found.push({
        path: place.path,
        value: value === absent ? undefined : value,
        body,
        fits: this.fits(body),
      });
    }
  }
}
