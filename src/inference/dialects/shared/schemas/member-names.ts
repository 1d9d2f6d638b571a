import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { FunctionTool } from "../../../canonical/request.ts";
import type { EncodePlace } from "../encode-state.ts";
import { legalName, type MemberNames, typedObjectSchema } from "../tools.ts";
import { asArray, asObject, asString } from "../wire-fields.ts";
import { unitedParameters } from "./united-forms.ts";

/**
 * Matches the names that Claude's servers take for the members of a tool's arguments. They check
 * those of the arguments themselves, not those of objects within. Sources:
 * decocms/studio#6874 (2026-09), beautyfree/appstore-connect-mcp#2 (2026-04); for Converse
 * aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709 (2026-08).
 */
const legalMember = /^[a-zA-Z0-9_.-]{1,64}$/;
const lengthMax = 64;

/** Keywords whose members are named after those of the object. */
const namedKeywords = ["properties", "dependentRequired", "dependentSchemas", "dependencies"];

/**
 * Returns the schema of a function's arguments as Claude's servers take it, and notes the members
 * that have other names there.
 */
export function claudeParameters(tool: FunctionTool, place: EncodePlace): JsonObject {
  const { namer, sameDialect } = place.state;
  const schema = typedObjectSchema(unitedParameters(tool.parameters, place));
  if (sameDialect) return schema;
  const legal = withLegalMembers(schema);
  namer.renameMembers({ ...tool, kind: "function" }, legal.names);
  return legal.schema;
}

/**
 * Returns the schema of a tool's arguments with names that Claude takes, and the new names by those
 * that had to change. The same schema gets the same names in every request.
 */
export function withLegalMembers(schema: JsonObject): { schema: JsonObject; names: MemberNames } {
  const written = Object.keys(asObject(schema.properties) ?? {});
  const taken = new Set(written.filter((name) => legalMember.test(name)));
  const names = new Map<string, string>();
  for (const name of written.filter((each) => !taken.has(each))) {
    const legal = legalFor(name, taken);
    taken.add(legal);
    names.set(name, legal);
  }
  return { schema: names.size === 0 ? schema : renamedSchema(schema, names), names };
}

/** Returns the name without its other characters, or with a hash where that is another's. */
function legalFor(name: string, taken: ReadonlySet<string>): string {
  const clean = name.replace(/[^a-zA-Z0-9_.-]/g, "_");
  return legalMember.test(clean) && /[a-zA-Z0-9]/.test(clean) && !taken.has(clean)
    ? clean
    : legalName(`${name} `, lengthMax);
}

function renamedSchema(schema: JsonObject, names: MemberNames): JsonObject {
  const renamed = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      const map = namedKeywords.includes(key) ? asObject(value) : undefined;
      if (map !== undefined) return [key, withMembers(map, names)];
      return [key, key === "required" ? renamedList(value, names) : value];
    }),
  );
  return withReferences(renamed, names);
}

const renamedList = (value: JsonValue | undefined, names: MemberNames): JsonValue | undefined =>
  asArray(value)?.map((name) => names.get(asString(name) ?? "") ?? name) ?? value;

/** Returns an object with new names for its members, in their order; any other value as it is. */
export function withMembers<Value extends JsonValue>(
  value: Value,
  names: MemberNames | undefined,
): Value | JsonObject {
  const object = names === undefined || names.size === 0 ? undefined : asObject(value);
  if (object === undefined) return value;
  return Object.fromEntries(
    Object.entries(object).map(([name, inner]) => [names?.get(name) ?? name, inner]),
  );
}

/** Returns the schema with its references to members (`#/properties/filter[id]`) renamed. */
function withReferences(schema: JsonObject, names: MemberNames): JsonObject {
  const renamed = (value: JsonValue | undefined): JsonValue | undefined => {
    const list = asArray(value);
    if (list !== undefined) return list.map((entry) => renamed(entry) ?? null);
    const object = asObject(value);
    return object === undefined ? value : within(object);
  };
  const within = (object: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(object).map(([key, value]) => [
        key,
        key === "$ref" && typeof value === "string" ? reference(value, names) : renamed(value),
      ]),
    );
  return within(schema);
}

function reference(ref: string, names: MemberNames): string {
  const [, name, rest = ""] = /^#\/properties\/([^/]+)(.*)$/s.exec(ref) ?? [];
  const legal = name === undefined ? undefined : names.get(pointed(name));
  return legal === undefined ? ref : `#/properties/${legal}${rest}`;
}

/** Returns the name that a step of a JSON pointer means, in an address or not (RFC 6901). */
function pointed(step: string): string {
  const plain = step.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

const quote = '"';

/**
 * Renames the members of arguments that come in pieces of JSON text. A name is held back until it is
 * whole; everything else is passed on as it comes.
 */
export class MemberRenamer {
  /** The objects and lists that are open; names are those of the first, where it is an object. */
  private depth = 0;
  private isObject = false;
  private awaitsName = false;
  private inText = false;
  private isEscaped = false;
  /** What has come of a name, with its quotes; undefined outside of names. */
  private held: string | undefined;

  constructor(private readonly names: MemberNames) {}

  /** Returns what a further piece yields. */
  push(piece: string): string {
    let out = "";
    for (let index = 0; index < piece.length; index += 1) {
      const character = piece[index] ?? "";
      const ended = this.inText ? this.readText(character) : this.read(character);
      if (ended !== undefined) out += ended;
      else if (this.held !== undefined) this.held += character;
      else out += character;
    }
    return out;
  }

  /** Returns what is held of a name that was cut. */
  end(): string {
    const { held = "" } = this;
    this.held = undefined;
    return held;
  }

  /** Reads a character of a text; returns the name that it ends. */
  private readText(character: string): string | undefined {
    if (this.isEscaped) this.isEscaped = false;
    else if (character === "\\") this.isEscaped = true;
    else if (character === quote) return this.endText();
    return undefined;
  }

  private endText(): string | undefined {
    this.inText = false;
    if (this.held === undefined) return undefined;
    const written = this.held + quote;
    this.held = undefined;
    return renamedText(written, this.names);
  }

  private read(character: string): undefined {
    const isTop = this.depth === 1;
    if (character === quote) {
      this.inText = true;
      if (isTop && this.awaitsName) this.held = "";
      this.awaitsName = false;
    } else if (character === "{" || character === "[") {
      if (this.depth === 0) this.isObject = this.awaitsName = character === "{";
      this.depth += 1;
    } else if (character === "}" || character === "]") this.depth -= 1;
    else if (character === "," && isTop) this.awaitsName = this.isObject;
    return undefined;
  }
}

function renamedText(written: string, names: MemberNames): string {
  try {
    const name = names.get(JSON.parse(written) as string);
    return name === undefined ? written : JSON.stringify(name);
  } catch {
    return written;
  }
}
