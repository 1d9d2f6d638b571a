import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endpoints } from "../../../src/endpoints/index.ts";
import { describedEndpoints } from "../../../src/http/open-api/open-api.ts";
import { errorCatalog } from "../../../src/platform/kernel/errors.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";

let gateway: TestGateway;
let document: unknown;
let page: string;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true, publicUrl: () => "https://gateway.example" });
  document = await (await fetch(`${gateway.baseUrl}/openapi.json`)).json();
  page = await (await fetch(`${gateway.origin}/docs`)).text();
});
afterAll(() => gateway.stop());

interface Operation {
  method: string;
  path: string;
  body: unknown;
}

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/**
 * POST and PATCH bring a body, but for actions that need none; a revocation may bring its reason.
 */
const withoutBody = [
  "post /session/playground-key",
  "post /responses/{id}/cancel",
  "post /budgets/{id}/rotate-secret",
  "post /api/auth/sign-out",
  "post /api/auth/send-verification-email",
  "post /presets/{slug}/versions/{version}/restore",
  "post /auth/byok/keys/{key_id}/test",
  "post /budgets/{id}/test",
  "post /admin/reload",
  "post /admin/upstreams/{id}/clear",
  "post /admin/users/{id}/password-reset",
  "post /prompts/{id}/star",
  "post /skills/{id}/star",
  "post /realtime/calls",
  "post /live/*",
  "post /p/{provider}/*",
  "patch /p/{provider}/*",
  "post /uploads/{id}/cancel",
  "post /batches/{id}/cancel",
  "post /messages/batches/{id}/cancel",
];
/**
 * What is deleted for a reason, with a password, or with a word on credits or keys that are left.
 */
const withBody = [
  "delete /management-keys/{id}",
  "delete /security/ip-allowlist/{id}",
  "delete /session/user",
  "delete /organizations/{id}",
  "delete /organizations/{id}/members/{user_id}",
];
const sendsBody = (called: string): boolean =>
  withBody.includes(called) || (/^(?:post|patch) /.test(called) && !withoutBody.includes(called));

const operations = (): Operation[] =>
  Object.entries(Object(at(document, "paths")) as Record<string, unknown>).flatMap(([path, item]) =>
    Object.entries(Object(item) as Record<string, unknown>)
      .filter(([key]) => methods.includes(key))
      .map(([method, body]) => ({ method, path, body })),
  );

/** Every value of a tree, with the path that leads to it. */
function* walk(value: unknown, path: string[] = []): Generator<{ path: string[]; value: unknown }> {
  yield { path, value };
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, [...path, key]);
}

/** What a reference such as `#/components/schemas/Error` points at (RFC 6901). */
const resolve = (reference: string): unknown =>
  reference
    .slice(2)
    .split("/")
    .reduce<unknown>(
      (value, key) => Reflect.get(Object(value), key.replaceAll("~1", "/").replaceAll("~0", "~")),
      document,
    );

describe("the OpenAPI document", () => {
  test("is version 3.1 and names the API's base URLs", () => {
    expect(textAt(document, "openapi")).toMatch(/^3\.1\.\d+$/);
    expect(at(document, "info")).toMatchObject({ title: "Switchyard API", version: "0.0.0-test" });
    expect(listAt(document, "servers").map((server) => at(server, "url"))).toEqual([
      "https://gateway.example/api/v1",
      "https://gateway.example/v1",
    ]);
  });

  test("names every content type of a response", () => {
    const typesOf = (path: string, method: string): string[] =>
      Object.keys(Object(at(document, `paths.${path}.${method}.responses.200.content`)));
    expect(typesOf("/chat/completions", "post")).toEqual(["application/json", "text/event-stream"]);
    expect(typesOf("/analytics/spend", "get")).toEqual(["application/json", "text/csv"]);
    expect(typesOf("/credits", "get")).toEqual(["application/json"]);
  });

  test("has every endpoint of the table and nothing else", () => {
    const table = describedEndpoints(endpoints).map(
      ({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)/g, "{$1}")}`,
    );
    expect(
      operations()
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
    ).toEqual(table.sort());
  });

  test("gives every operation a unique id, a summary and a tag", () => {
    const ids = operations().map(({ body }) => textAt(body, "operationId"));
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z][a-zA-Z0-9]*$/);
    for (const { body } of operations()) {
      expect(textAt(body, "summary")).toEndWith(".");
      expect(listAt(body, "tags")).toHaveLength(1);
    }
  });

  test("resolves every reference within itself", () => {
    const references = [...walk(document)]
      .filter(({ path }) => path.at(-1) === "$ref")
      .map(({ value }) => String(value));
    expect(references.length).toBeGreaterThan(0);
    for (const reference of references) {
      expect(reference).toStartWith("#/");
      expect(resolve(reference)).toBeDefined();
    }
  });

  test("declares every path parameter exactly once", () => {
    for (const { path, body } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const parameters = Array.isArray(at(body, "parameters")) ? listAt(body, "parameters") : [];
      const declared = parameters.filter((parameter) => at(parameter, "in") === "path");
      expect(declared.map((parameter) => at(parameter, "name")).sort()).toEqual(inPath.sort());
      expect(declared.every((parameter) => at(parameter, "required") === true)).toBe(true);
      const names = parameters.map(
        (parameter) => `${at(parameter, "in")} ${at(parameter, "name")}`,
      );
      expect(new Set(names).size).toBe(names.length);
      for (const parameter of parameters)
        expect(["string", "integer", "array", "number", "boolean"]).toContain(
          textAt(parameter, "schema.type"),
        );
    }
  });

  test("names only defined security schemes, at least one for every operation", () => {
    const schemes = Object.keys(Object(at(document, "components.securitySchemes")));
    for (const { body } of operations()) {
      const alternatives = listAt(body, "security");
      expect(alternatives.length).toBeGreaterThan(0);
      for (const name of alternatives.flatMap((alternative) => Object.keys(Object(alternative))))
        expect(schemes).toContain(name);
    }
    const keys = operations().find(({ method, path }) => method === "post" && path === "/keys");
    expect(at(keys?.body, "security")).toEqual([{ managementKey: [] }, { session: [] }]);
    expect(at(keys?.body, "x-required-scope")).toBe("write:llm-keys");
  });

  test("has a success and an error response for every operation, request bodies and no undefined schema", () => {
    for (const { method, path, body } of operations()) {
      const statuses = Object.keys(Object(at(body, "responses")));
      // A WebSocket begins with 101.
      expect(statuses.some((status) => /^2|^(?:101|302)$/.test(status))).toBe(true);
      expect(statuses).toContain("default");
      const called = `${method} ${path}`;
      expect([called, at(body, "requestBody") !== undefined]).toEqual([called, sendsBody(called)]);
      for (const status of statuses) {
        const answer: unknown = Object(at(body, "responses"))[status];
        const reference = at(answer, "$ref");
        expect(
          at(typeof reference === "string" ? resolve(reference) : answer, "description"),
        ).toBeString();
      }
    }
  });

  test("lists every code of the error catalogue", () => {
    expect(
      listAt(document, "components.schemas.Error.properties.error.properties.code.enum"),
    ).toEqual(Object.keys(errorCatalog));
  });

  test("is the same under both base URLs", async () => {
    const other = await fetch(`${gateway.origin}/v1/openapi.json`);
    expect(other.headers.get("content-type")).toBe("application/json");
    expect(await other.json()).toEqual(document);
  });
});

describe("the documentation page", () => {
  test("begins with a working curl command for a free model", async () => {
    const command =
      page.replaceAll("&quot;", '"').match(/curl [^<]*chat\/completions[^<]*/)?.[0] ?? "";
    expect(command).toContain("sandbox/chat:free");
    const answer = await gateway.post(
      "/chat/completions",
      /-d '(.*)'/.exec(command.replaceAll("&#x27;", "'"))?.[1] ?? "",
    );
    expect(answer.status).toBe(200);
    expect(at(await answer.json(), "usage.cost")).toBe(0);
  });

  test("runs no inline script and loads nothing from other origins", async () => {
    const { headers } = await fetch(`${gateway.origin}/docs`);
    expect(headers.get("content-security-policy")).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'",
    );
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page).not.toMatch(/<script>|src="(?!\/docs\/site\/)|<style|style=|@import/i);
  });
});
