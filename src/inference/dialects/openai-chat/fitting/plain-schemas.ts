import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import { unitedForms } from "../../shared/schemas/united-forms.ts";
import { asArray, asObject, asString } from "../../shared/wire-fields.ts";
import { withTypedValues } from "./typed-values.ts";

/**
 * Returns the schema of a function's arguments as Moonshot takes it, which refuses the whole request
 * for one of them; the same object where nothing has to change. Sources: MoonshotAI/walle (2026-06),
 * anomalyco/opencode#37625, Hmbown/Codewhale#4613 (2026-07).
 */
export function plainSchema(schema: JsonObject): JsonObject {
  const plain = new PlainSchema(schema).whole();
  return Bun.deepEquals(plain, schema) ? schema : plain;
}

/** Members whose values are lists of schemas, schemas by name, and one schema. */
const lists: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const maps: ReadonlySet<string> = new Set(["properties", "patternProperties", "dependentSchemas"]);
const singles: ReadonlySet<string> = new Set(["not", "if", "then", "else", "contains"]);

/** Members that are looked into, and whose schemas have to be whole. */
const checked: ReadonlySet<string> = new Set(["properties", "anyOf"]);

/** Members that hold for the forms beside them too. */
const objectRules = ["properties", "required", "additionalProperties"];

/** The longest chain of references at the top of a schema. */
const chainMax = 8;

/** Writes one schema, with its definitions where Moonshot looks for them. */
class PlainSchema {
  /** What references name, by the names of their definitions. */
  private readonly definitions: Record<string, JsonObject> = {};

  constructor(private readonly root: JsonObject) {}

  whole(): JsonObject {
    const { $defs, definitions: _, ...top } = this.top(this.root, chainMax);
    for (const [name, definition] of Object.entries(asObject($defs) ?? {}))
      this.definitions[name] ??= this.schema(definition);
    const united = "anyOf" in top ? unitedForms(top, this.root).schema : top;
    const plain = { type: "object", ...this.schema(united) };
    return Object.keys(this.definitions).length === 0
      ? plain
      : { ...plain, $defs: this.definitions };
  }

  /** Returns the schema that the top is, which must be an object's and no reference to one. */
  private top(schema: JsonObject, chain: number): JsonObject {
    const { $ref: reference, ...rest } = schema;
    if (typeof reference !== "string") return schema;
    const target = chain === 0 ? undefined : this.target(reference);
    return target === undefined ? rest : this.top({ ...rest, ...target }, chain - 1);
  }

  /** Returns a schema; one that is true or false as an object of the same meaning. */
  private schema(value: JsonValue | undefined, isChecked = true): JsonObject {
    if (typeof value === "boolean") return value ? {} : { not: {} };
    const schema = asObject(value) ?? {};
    const { $ref: reference } = schema;
    if (typeof reference === "string") return this.reference(reference);
    const entries = Object.entries(this.withPlainForms(schema)).map(
      ([name, member]): [string, JsonValue | undefined] => [name, this.member(name, member)],
    );
    const plain = withTypedValues(Object.fromEntries(entries));
    return isChecked ? withNamedRequirements(plain) : plain;
  }

  private member(name: string, value: JsonValue | undefined): JsonValue | undefined {
    if (name === "items") return this.items(value);
    if (name === "additionalProperties" && typeof value !== "boolean") return this.schema(value);
    const isChecked = checked.has(name);
    if (singles.has(name)) return this.schema(value, isChecked);
    if (lists.has(name)) return asArray(value)?.map((one) => this.schema(one, isChecked)) ?? value;
    const inner = maps.has(name) ? asObject(value) : undefined;
    if (inner === undefined) return value;
    const entries = Object.entries(inner).map(([key, one]) => [key, this.schema(one, isChecked)]);
    return Object.fromEntries(entries) as JsonObject;
  }

  /** Returns the schema of all items; those of a tuple are its alternatives. */
  private items(value: JsonValue | undefined): JsonObject {
    const tuple = asArray(value);
    if (tuple === undefined || tuple.length === 1) return this.schema(tuple?.[0] ?? value);
    return tuple.length === 0 ? {} : { anyOf: tuple.map((one) => this.schema(one)) };
  }

  /** Returns a reference, which stands alone and names a definition of the top. */
  private reference(reference: string): JsonObject {
    const own = /^#(?:\/\$defs\/[^/]+)?$/.test(reference);
    const target = this.target(reference);
    if (target === undefined) return {};
    if (own) return { $ref: reference };
    const name = reference.replace(/^#\/(?:definitions\/)?/, "").replaceAll("/", "_");
    if (!(name in this.definitions)) {
      // Noted before it is written, since it may lead back to itself.
      this.definitions[name] = target;
      this.definitions[name] = this.schema(target);
    }
    return { $ref: `#/$defs/${name}` };
  }

  private target(reference: string): JsonObject | undefined {
    if (reference === "#") return this.root;
    if (!reference.startsWith("#/")) return undefined;
    const names = reference.slice(2).split("/");
    const found = names.reduce<JsonValue | undefined>((value, name) => {
      const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
      return asArray(value)?.[Number(key)] ?? asObject(value)?.[key];
    }, this.root);
    return typeof found === "boolean" ? this.schema(found) : asObject(found);
  }

  /**
   * Returns a schema whose forms stand without a type beside them: each has it itself, or one object
   * has the members of all where all are objects and other rules hold for them too. Values that are
   * listed need no forms.
   */
  private withPlainForms(schema: JsonObject): JsonObject {
    const { anyOf, ...others } = schema;
    const forms = asArray(anyOf);
    if (forms === undefined) return schema;
    if ("enum" in schema) return others;
    if (objectRules.some((rule) => rule in schema) && forms.every((form) => this.isObjects(form)))
      return unitedForms(schema, this.root).schema;
    const { type, properties: _, required: __, additionalProperties: ___, ...rest } = others;
    return {
      ...rest,
      anyOf: type === undefined ? forms : forms.map((form) => withType(form, type)),
    };
  }

  /** Returns whether one of several forms may be an object's. */
  private isObjects(form: JsonValue): boolean {
    const { $ref: reference, type } = asObject(form) ?? {};
    const named = typeof reference === "string" ? this.target(reference)?.type : type;
    return named === undefined || [named].flat().includes("object");
  }
}

/** Returns one of several forms with the type of all, where it has none. */
function withType(form: JsonValue, type: JsonValue): JsonValue {
  const schema = form === true ? {} : asObject(form);
  return schema === undefined || "type" in schema || "$ref" in schema ? form : { type, ...schema };
}

/**
 * Returns a schema that requires no member without naming it, and has the older drafts' `required:
 * true` of one member no more.
 */
function withNamedRequirements(schema: JsonObject): JsonObject {
  const { required, ...rest } = schema;
  if (required === undefined) return schema;
  const named = asObject(schema.properties) ?? {};
  const names = asArray(required);
  const kept = (names ?? []).filter((name) => (asString(name) ?? "") in named);
  if (kept.length === names?.length) return schema;
  return kept.length === 0 ? rest : { ...rest, required: kept };
}
