// Writes dashboard/src/lib/api-schema.ts: the API's answers and bodies as openapi-typescript makes
// them from the OpenAPI document of the endpoint table. The generator works with a TypeScript before
// 7, so it has packages of its own in scripts/openapi-typescript, which only this command installs.
// Tests compare the checksums at the head of the file instead.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endpoints } from "../src/endpoints/index.ts";
import type { Endpoint } from "../src/access/define-endpoint.ts";
import { fieldWords } from "../src/endpoints/ops/field-words.ts";
import { openApiDocument } from "../src/http/open-api/open-api.ts";

/** A part of the document. */
type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const member = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value);
const entriesOf = (value: unknown): [string, unknown][] =>
  isObject(value) ? Object.entries(value) : [];

/** Returns whether a signed-in person may use an operation, as screens do. */
function isForPeople(operation: unknown): boolean {
  const security = member(operation, "security");
  return (
    Array.isArray(security) &&
    security.some((way) => isObject(way) && ("session" in way || Object.keys(way).length === 0))
  );
}

/**
 * Reduces a schema to what its type consists of, without words, examples and bounds, so that a
 * change of those leaves the types as they are. Objects with properties of their own have no others.
 */
function typesOf(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const hasOwn = entriesOf(schema["properties"]).length > 0;
  const kept: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (["$ref", "type", "const", "enum", "required"].includes(keyword))
      kept.push([keyword, value]);
    if (keyword === "items" || (keyword === "additionalProperties" && !hasOwn))
      kept.push([keyword, typesOf(value)]);
    if (["anyOf", "oneOf", "allOf", "prefixItems"].includes(keyword) && Array.isArray(value))
      kept.push([keyword, value.map(typesOf)]);
    if (keyword === "properties" && hasOwn)
      kept.push([
        keyword,
        Object.fromEntries(entriesOf(value).map(([name, inner]) => [name, typesOf(inner)])),
      ]);
  }
  return Object.fromEntries(kept);
}

/** Returns the schema of a body or an answer in JSON; undefined where it has none. */
function schemaOf(message: unknown): unknown {
  const schema = member(message, "content", "application/json", "schema");
  return schema === undefined ? undefined : typesOf(schema);
}

/** Lists the names of the components that a part of the document refers to. */
const referencesIn = (part: unknown): string[] =>
  [...JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
    ([, name = ""]) => name,
  );

/** Returns the components that a part of the document needs, with those that they refer to. */
function componentsFor(part: unknown, schemas: unknown): Json {
  const found = new Map<string, unknown>();
  const waiting = referencesIn(part);
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue;
    const types = typesOf(member(schemas, name));
    found.set(name, types);
    waiting.push(...referencesIn(types));
  }
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns a schema of an object that has each of these members. */
const objectOf = (members: readonly (readonly [string, unknown])[]): Json => ({
  type: "object",
  properties: Object.fromEntries(members),
  required: members.map(([name]) => name),
});

/**
 * Returns the part of the API's document that screens read and write, as far as types go: the
 * schemas `Answers` and `Bodies` have a member for each operation, and paths there are none.
 */
function documentOfScreens(): Json {
  const table = endpoints as readonly Endpoint<never>[];
  const place = { version: "0", publicUrl: "http://gateway", words: fieldWords };
  const document = openApiDocument(table, place);
  const answers: [string, unknown][] = [];
  const bodies: [string, unknown][] = [];
  for (const [path, item] of entriesOf(document["paths"])) {
    // Paths beside the API are those of browsers, clients and probes.
    if (member(item, "servers") !== undefined) continue;
    for (const [method, operation] of entriesOf(item)) {
      if (!isForPeople(operation)) continue;
      const name = `${method.toUpperCase()} ${path}`;
      const answer = schemaOf(
        member(operation, "responses", "200") ?? member(operation, "responses", "201"),
      );
      const body = schemaOf(member(operation, "requestBody"));
      if (answer !== undefined) answers.push([name, answer]);
      if (body !== undefined) bodies.push([name, body]);
    }
  }
  const ofScreens = { Answers: objectOf(answers), Bodies: objectOf(bodies) };
  const others = componentsFor(ofScreens, member(document, "components", "schemas"));
  const components = { schemas: { ...ofScreens, ...others } };
  return { openapi: "3.1.0", info: { title: "API", version: "0" }, paths: {}, components };
}

const checksum = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The file of the generated types. */
export const typesPath = join(import.meta.dirname, "../dashboard/src/lib/api-schema.ts");

/** Returns generated types with the checksums of the document and of themselves at the head. */
export const withChecksums = (types: string): string =>
  `// Made by openapi-typescript from the endpoint table; \`npm run dashboard:types\` writes it again.
// Document: ${checksum(JSON.stringify(documentOfScreens()))}
// Types: ${checksum(types)}
${types}`;

/** Runs a program to its end. Throws if it fails. */
function run(program: string, parameters: readonly string[]): void {
  const { status, error } = spawnSync(program, parameters, { stdio: "inherit" });
  if (status !== 0) throw new Error(`${program} ${parameters[0]} failed`, { cause: error });
}

/** Generates the types with the locked generator, which is installed beside its input and removed. */
function generate(): string {
  const folder = mkdtempSync(join(tmpdir(), "dashboard-types-"));
  try {
    cpSync(join(import.meta.dirname, "openapi-typescript"), folder, { recursive: true });
    run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder]);
    const input = join(folder, "document.json");
    const output = join(folder, "types.ts");
    writeFileSync(input, JSON.stringify(documentOfScreens()));
    const program = join(folder, "node_modules/openapi-typescript/bin/cli.js");
    run("node", [program, input, "--immutable", "--empty-objects-unknown", "--output", output]);
    return readFileSync(output, "utf8");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) writeFileSync(typesPath, withChecksums(generate()));
