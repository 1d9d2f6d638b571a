// Writes dashboard/src/lib/api-types.ts from the endpoint table: the answers that the dashboard
// reads and the bodies that it sends, as the OpenAPI document has them.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { endpoints } from "../src/endpoints/index.ts";
import type { Endpoint } from "../src/access/define-endpoint.ts";
import { fieldWords } from "../src/endpoints/ops/field-words.ts";
import { openApiDocument } from "../src/http/open-api.ts";

/** A part of the document. */
type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const member = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value);

/** Operations whose answers screens read. */
const read = [
  "GET /session",
  "GET /workspaces",
  "GET /models",
  "GET /keys",
  "GET /customers",
  "GET /teams",
  "GET /credits",
  "GET /referrals",
  "GET /analytics/generations",
  "GET /analytics/generations/histogram",
  "GET /analytics/errors",
  "GET /analytics/usage",
  "GET /analytics/usage/parts",
  "GET /generation/{id}/explain",
  "GET /generation/content",
  "GET /health",
  "GET /health/history",
  "POST /session/playground-key",
  "GET /conversations",
  "GET /conversations/settings",
  "GET /presets",
  "GET /aliases",
  "GET /connections",
  "GET /mcp-servers",
  "GET /mcp-servers/{id}/connections",
  "GET /prompts",
  "GET /skills",
  "GET /hubs",
  "GET /hubs/{slug}/items",
  "GET /hubs/{slug}/items/{item}/versions",
  "GET /admin/overview",
  "GET /admin/workspaces",
  "GET /admin/users",
  "GET /admin/plans",
  "GET /admin/upstreams",
  "GET /admin/errors",
  "GET /admin/settings",
  "GET /admin/incidents",
  "GET /admin/configuration",
  "POST /admin/configuration/test",
  "GET /security/privacy",
] as const;

/** Operations that screens send a body to. */
const sent = [
  "PATCH /session",
  "PATCH /session/preferences",
  "DELETE /session/user",
  "POST /organizations",
  "PATCH /organizations/{id}",
  "DELETE /organizations/{id}",
  "POST /organizations/{id}/invitations",
  "PATCH /organizations/{id}/members/{user_id}",
  "DELETE /organizations/{id}/members/{user_id}",
  "POST /keys",
  "PATCH /keys/{hash}",
  "POST /keys/{hash}/rotate",
  "POST /keys/{hash}/children",
  "POST /management-keys",
  "DELETE /management-keys/{id}",
  "POST /presets",
  "PATCH /presets/{slug}",
  "POST /aliases",
  "PATCH /aliases/{name}",
  "PATCH /runs/{id}",
  "POST /teams",
  "PATCH /teams/{id}",
  "POST /teams/{id}/members",
  "POST /customers",
  "PATCH /customers/{id}",
  "POST /customers/{id}/credits",
  "POST /customers/{id}/keys",
  "POST /customers/{id}/balance-link",
  "POST /mcp-servers",
  "PATCH /mcp-servers/{id}",
  "POST /mcp-servers/{id}/refresh",
  "POST /auth/byok",
  "POST /auth/byok/test",
  "PATCH /auth/byok/keys/{key_id}",
  "POST /byok/donated",
  "PATCH /byok/donated/{id}",
  "POST /prompts",
  "PATCH /prompts/{id}",
  "POST /prompts/{id}/fork",
  "POST /skills",
  "PATCH /skills/{id}",
  "POST /skills/{id}/fork",
  "POST /hubs",
  "PATCH /hubs/{slug}",
  "POST /hubs/{slug}/items",
  "PATCH /hubs/{slug}/items/{item}",
  "POST /hubs/{slug}/import",
  "POST /conversations",
  "POST /conversations/{id}/messages",
  "POST /credits/top-ups",
  "POST /credits/automatic",
  "POST /budgets",
  "PATCH /budgets/{id}",
  "POST /security/ip-allowlist",
  "DELETE /security/ip-allowlist/{id}",
  "PATCH /security/privacy",
  "POST /admin/grants",
  "PATCH /admin/users/{id}",
  "PATCH /admin/workspaces/{id}",
  "POST /admin/smoke-tests",
  "POST /admin/incidents",
  "PATCH /admin/incidents/{id}",
  "POST /admin/configuration",
  "POST /admin/configuration/test",
  "POST /admin/prompts/{id}/approve",
  "POST /admin/prompts/{id}/reject",
] as const;

/** TypeScript for a JSON schema of the document. */
class TypeWriter {
  readonly #components: unknown;
  /** Names of components that were met, each with its text. */
  readonly named = new Map<string, string>();

  constructor(components: unknown) {
    this.#components = components;
  }

  of(schema: unknown): string {
    if (!isObject(schema)) return "unknown";
    const { $ref: ref, const: constant, enum: choices, type } = schema;
    if (typeof ref === "string") return this.#component(ref.slice(ref.lastIndexOf("/") + 1));
    if (constant !== undefined) return JSON.stringify(constant);
    if (Array.isArray(choices)) return choices.map((choice) => JSON.stringify(choice)).join(" | ");
    for (const union of [schema["anyOf"], schema["oneOf"]])
      if (Array.isArray(union)) return [...new Set(union.map((each) => this.of(each)))].join(" | ");
    if (Array.isArray(schema["allOf"]))
      return schema["allOf"].map((each) => `(${this.of(each)})`).join(" & ");
    if (Array.isArray(type))
      return type.map((each) => this.of({ ...schema, type: each })).join(" | ");
    if (type === "array") return `readonly (${this.of(schema["items"])})[]`;
    if (type === "object" || isObject(schema["properties"])) return this.#object(schema);
    if (type === "integer" || type === "number") return "number";
    return type === "string" || type === "boolean" || type === "null" ? type : "unknown";
  }

  #object(schema: Json): string {
    const { properties, required, additionalProperties } = schema;
    const needed: readonly unknown[] = Array.isArray(required) ? required : [];
    const own = Object.entries(isObject(properties) ? properties : {}).map(
      ([name, each]) =>
        `${JSON.stringify(name)}${needed.includes(name) ? "" : "?"}: ${this.of(each)}`,
    );
    if (own.length > 0)
      return `{\n${own
        .map((line) => `${line};`)
        .join("\n")
        .replaceAll(/^/gm, "  ")}\n}`;
    return `Readonly<Record<string, ${isObject(additionalProperties) ? this.of(additionalProperties) : "unknown"}>>`;
  }

  #component(name: string): string {
    if (!this.named.has(name)) {
      this.named.set(name, "unknown");
      this.named.set(name, this.of(member(this.#components, "schemas", name)));
    }
    return name;
  }
}

/** The text of the file. Throws for an operation that the API does not have. */
export function apiTypesText(): string {
  const table = endpoints as readonly Endpoint<never>[];
  const document = openApiDocument(table, {
    version: "0",
    publicUrl: "http://gateway",
    words: fieldWords,
  });
  const paths = member(document, "paths");
  const writer = new TypeWriter(member(document, "components"));
  const typed = (name: string, ...where: readonly string[]): string => {
    const [method = "", path = ""] = name.split(" ");
    const operation =
      member(paths, path, method.toLowerCase()) ??
      member(paths, `/api/v1${path}`, method.toLowerCase());
    const schema = member(operation, ...where, "content", "application/json", "schema");
    if (schema === undefined) throw new Error(`the API has no ${name} with ${where[0]} in JSON`);
    return `${JSON.stringify(name)}: ${writer.of(schema)};`.replaceAll(/^/gm, "  ");
  };
  const answers = read.map((name) => typed(name, "responses", "200"));
  const bodies = sent.map((name) => typed(name, "requestBody"));
  const components = [...writer.named]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => `export type ${name} = ${text};`);
  return `// Generated by scripts/api-types.ts from the endpoint table; \`npm run dashboard:types\` regenerates it.
${components.join("\n")}

/** Answers by operation. */
export interface Answers {
${answers.join("\n")}
}

/** Bodies by operation. */
export interface Bodies {
${bodies.join("\n")}
}
`;
}

if (import.meta.main)
  writeFileSync(
    join(fileURLToPath(new URL("..", import.meta.url)), "dashboard/src/lib/api-types.ts"),
    apiTypesText(),
  );
