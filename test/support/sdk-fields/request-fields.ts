import { join } from "node:path";
import { isInterfaceDeclaration } from "typescript/unstable/ast";
import {
  API,
  type Checker,
  type Symbol,
  SymbolFlags,
  type Type,
  TypeFlags,
} from "typescript/unstable/async";

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
type JsonFields = Record<string, Json>;

/** A field of a request as an SDK types it, with two requests that differ in it alone. */
export interface RequestField {
  /** The path, with variants by their type, such as `messages[role=user].content[type=text].text`. */
  path: string;
  without: JsonFields;
  with: JsonFields;
}

const root = `${import.meta.dir}/../../..`;

/** Returns the optional fields and the variants of every request type, by the type's name. */
export async function requestFields(): Promise<Map<string, RequestField[]>> {
  const compiler = new API({ cwd: root });
  try {
    const configuration = `${import.meta.dir}/tsconfig.json`;
    const snapshot = await compiler.updateSnapshot({ openProjects: [configuration] });
    const project = snapshot.getProjects()[0];
    const file = await project?.program.getSourceFile(join(import.meta.dir, "request-types.ts"));
    const declared = file?.statements.find(isInterfaceDeclaration);
    if (project === undefined || declared === undefined) throw new Error("no request types");
    const types = await project.checker.getTypeAtLocation(declared.name);
    if (types === undefined) throw new Error("the request types cannot be read");
    const walker = new Walker(project.checker);
    const fields = new Map<string, RequestField[]>();
    for (const symbol of await project.checker.getPropertiesOfType(types))
      fields.set(symbol.name, await walker.fieldsOf(symbol));
    return fields;
  } finally {
    await compiler.close();
  }
}

/** The depth of objects and lists beyond which fields are not told apart. */
const depthMax = 9;

/** A place in a request that is being walked. */
interface Place {
  path: string;
  depth: number;
  /** Returns the whole request with a value in this place. */
  wrap(value: Json): JsonFields;
}

class Walker {
  private readonly checker: Checker;
  private readonly properties = new Map<number, readonly Symbol[]>();
  private readonly types = new Map<number, Type>();
  private found: RequestField[] = [];
  private seen = new Set<string>();

  constructor(checker: Checker) {
    this.checker = checker;
  }

  async fieldsOf(symbol: Symbol): Promise<RequestField[]> {
    this.found = [];
    this.seen = new Set();
    const type = await this.typeOf(symbol);
    await this.walk(type, { path: "", depth: 0, wrap: (value) => value as JsonFields });
    return this.found;
  }

  private async walk(type: Type, place: Place): Promise<void> {
    if (place.depth > depthMax) return;
    const element = await this.elementOf(type);
    if (element !== undefined) {
      await this.walkVariants(element, {
        path: `${place.path}[]`,
        depth: place.depth + 1,
        wrap: (value) => place.wrap([value]),
      });
      return;
    }
    if (this.isObject(type)) await this.walkMembers(type, place);
  }

  /** Walks each object of a union, named by its type or role; `place` is an entry of a list. */
  private async walkVariants(type: Type, place: Place): Promise<void> {
    for (const one of await this.partsOf(type)) {
      if (!this.isObject(one) && (await this.elementOf(one)) === undefined) continue;
      const path = place.path.replace(/\[\]$/, `[${await this.tagOf(one)}]`);
      if (this.seen.has(path)) continue;
      this.seen.add(path);
      await this.walk(one, { ...place, path });
    }
  }

  private async walkMembers(type: Type, place: Place): Promise<void> {
    const members = await this.propertiesOf(type);
    const sample = (await this.sampleOf(type, 0)) as JsonFields;
    for (const member of members) {
      const path = place.path === "" ? member.name : `${place.path}.${member.name}`;
      const { [member.name]: _own, ...others } = sample;
      const memberType = await this.typeOf(member);
      const wrap = (value: Json): JsonFields => place.wrap({ ...others, [member.name]: value });
      if ((member.flags & SymbolFlags.Optional) !== 0 && !this.seen.has(path)) {
        this.seen.add(path);
        const value = await this.sampleOf(memberType, 0);
        if (value !== undefined)
          this.found.push({ path, without: place.wrap(others), with: wrap(value) });
      }
      const parts = await this.partsOf(memberType);
      for (const part of parts) {
        if ((await this.elementOf(part)) !== undefined)
          await this.walk(part, { path, depth: place.depth + 1, wrap });
        else if (this.isObject(part) && parts.length > 1)
          await this.walkVariants(part, { path: `${path}[]`, depth: place.depth + 1, wrap });
        else if (this.isObject(part)) await this.walk(part, { path, depth: place.depth + 1, wrap });
      }
    }
  }

  /** Returns the members of a union that carry a value. */
  private async partsOf(type: Type): Promise<readonly Type[]> {
    if (!type.isUnionType()) return [type];
    return ((await type.getTypes()) ?? []).filter(
      ({ flags }) => (flags & (TypeFlags.Null | TypeFlags.Undefined)) === 0,
    );
  }

  private isObject(type: Type): boolean {
    return type.isObjectType() || type.isIntersectionType();
  }

  private async elementOf(type: Type): Promise<Type | undefined> {
    if (!type.isTypeReference() || !(await this.checker.isArrayLikeType(type))) return undefined;
    return (await this.checker.getTypeArguments(type))[0];
  }

  /** Returns what tells a variant from its siblings. */
  private async tagOf(type: Type): Promise<string> {
    for (const name of ["type", "role"]) {
      const member = (await this.propertiesOf(type)).find((symbol) => symbol.name === name);
      const parts = member && (await this.partsOf(await this.typeOf(member)));
      const [first] = parts ?? [];
      if (first?.isStringLiteralType()) return first.value;
    }
    return "";
  }

  private async propertiesOf(type: Type): Promise<readonly Symbol[]> {
    let known = this.properties.get(type.id);
    if (known === undefined)
      this.properties.set(type.id, (known = await this.checker.getPropertiesOfType(type)));
    return known;
  }

  private async typeOf(symbol: Symbol): Promise<Type> {
    let known = this.types.get(symbol.id);
    if (known === undefined) {
      known = await this.checker.getTypeOfSymbol(symbol);
      if (known === undefined) throw new Error(`${symbol.name} has no type`);
      this.types.set(symbol.id, known);
    }
    return known;
  }

  /** Returns a small value of a type: its first alternative, with required members only. */
  private async sampleOf(type: Type, depth: number): Promise<Json | undefined> {
    const parts = await this.partsOf(type);
    const part = parts.find((one) => !one.isLiteralType() || one.value !== false) ?? parts[0];
    if (part === undefined || depth > depthMax) return undefined;
    if (part.isLiteralType() && typeof part.value !== "bigint") return part.value;
    if ((part.flags & TypeFlags.String) !== 0) return "x";
    if ((part.flags & TypeFlags.Number) !== 0) return 1;
    if ((part.flags & TypeFlags.Boolean) !== 0) return true;
    const element = await this.elementOf(part);
    if (element !== undefined) {
      const value = await this.sampleOf(element, depth + 1);
      return value === undefined ? [] : [value];
    }
    if (!this.isObject(part)) return { x: 1 };
    const members = (await this.propertiesOf(part)).filter(
      ({ flags }) => (flags & SymbolFlags.Optional) === 0,
    );
    const fields: Record<string, Json> = {};
    for (const member of members)
      fields[member.name] = (await this.sampleOf(await this.typeOf(member), depth + 1)) ?? null;
    return fields;
  }
}
