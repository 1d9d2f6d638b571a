import { afterAll, beforeAll, expect, test } from "bun:test";
import { z } from "zod";
import { endpoints } from "../../../src/endpoints/index.ts";
import { describedEndpoints } from "../../../src/http/open-api/open-api.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";

const operationSchema = z.looseObject({
  operationId: z.string(),
  summary: z.string(),
  responses: z
    .object({
      200: z.looseObject({ content: z.record(z.string(), z.unknown()).optional() }).optional(),
      201: z.looseObject({ content: z.record(z.string(), z.unknown()).optional() }).optional(),
      302: z.unknown().optional(),
      default: z.unknown(),
    })
    .loose(),
});
const documentSchema = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

/** What only sends the browser elsewhere, or opens a socket. */
const withoutContent = new Set([
  "GET /api/auth/callback/{provider}",
  "GET /realtime",
  "GET /realtime/translations",
  "GET /live/*",
  "GET /mcp-servers/{id}/connect",
  "GET /connect/{id}",
  "GET /responses",
]);

test("the document describes the success of every endpoint, and every operation id is unique", async () => {
  const { paths } = documentSchema.parse(await (await gateway.get("/openapi.json")).json());
  const found = new Map<string, z.infer<typeof operationSchema>>();
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (method !== "servers")
        found.set(`${method.toUpperCase()} ${path}`, operationSchema.parse(operation));
    }
  }
  const described = describedEndpoints(endpoints);
  expect([...found.keys()].sort()).toEqual(
    described.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`).sort(),
  );
  expect(new Set([...found.values()].map(({ operationId }) => operationId)).size).toBe(
    described.length,
  );
  const silent = [...found]
    .filter(([, { responses }]) => (responses[200] ?? responses[201])?.content === undefined)
    .map(([name]) => name);
  expect(new Set(silent)).toEqual(withoutContent);
});

const pages = [
  "/sign-in",
  "/forgot-password",
  "/device",
  "/claim",
  "/join",
  "/sign-up",
  "/reset-password",
  "/verify-email",
  "/docs",
];
test.each(pages)("%s has the content type that the document declares", async (path) => {
  const { paths } = documentSchema.parse(await (await gateway.get("/openapi.json")).json());
  const { responses } = operationSchema.parse(paths[path]?.["get"]);
  const type = (await fetch(gateway.origin + path)).headers.get("content-type")?.split(";")[0];
  expect(Object.keys(responses[200]?.content ?? {})).toContain(String(type));
});

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isObject(value)) return [];
  const own = typeof value["$ref"] === "string" ? [value["$ref"]] : [];
  return [...own, ...Object.values(value).flatMap(referencesIn)];
}

const atPointer = (document: unknown, reference: string): unknown =>
  reference
    .slice(2)
    .split("/")
    .map((key) => key.replaceAll("~1", "/"))
    .reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), document);

test("every tag has a description, and the document has a licence", async () => {
  const document: unknown = await (await gateway.get("/openapi.json")).json();
  const tags = z
    .object({ tags: z.array(z.object({ name: z.string(), description: z.string() })) })
    .parse(document).tags;
  expect(tags.filter(({ name, description }) => description === name)).toEqual([]);
  expect(atPointer(document, "#/info/license")).toEqual({ name: "MIT", identifier: "MIT" });
});

test("every reference resolves, and records are named schemas", async () => {
  const document: unknown = await (await gateway.get("/openapi.json")).json();
  const references = [...new Set(referencesIn(document))];
  expect(references.filter((reference) => atPointer(document, reference) === undefined)).toEqual(
    [],
  );
  const named = [
    "Error",
    "LlmKey",
    "ManagementKey",
    "ProviderKey",
    "Budget",
    "Preset",
    "CreditGrant",
    "StoredResponse",
    "Model",
    "Generation",
    "Credits",
    "CurrentKey",
    "ChatCompletion",
    "PaymentError",
    "MessagesError",
  ];
  expect(
    named.filter((name) => !isObject(atPointer(document, `#/components/schemas/${name}`))),
  ).toEqual([]);
  expect(references).toContain("#/components/schemas/LlmKey");
});

test("streams have typed events, errors statuses, responses headers and creations Idempotency-Key", async () => {
  const document: unknown = await (await gateway.get("/openapi.json")).json();
  const at = (path: string): unknown =>
    path
      .split("|")
      .reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), document);
  const streams = [
    ["/chat/completions|post", "ChatCompletionChunk"],
    ["/messages|post", "MessageStreamEvent"],
    ["/responses|post", "ResponseStreamEvent"],
    ["/responses/{id}|get", "ResponseStreamEvent"],
  ];
  for (const [path, name] of streams) {
    expect(at(`paths|${path}|responses|200|content|text/event-stream|schema`)).toEqual({
      $ref: `#/components/schemas/${name}`,
    });
  }
  const statusesOf = (operation: string): string[] =>
    Object.keys(Object(at(`paths|${operation}|responses`))).slice(0, 3);
  expect(statusesOf("/files/{id}/content|get")).toEqual(["200", "206", "400"]);
  expect(statusesOf("/managed/settings|get")).toEqual(["200", "304", "400"]);
  expect(statusesOf("/mcp/oauth/register|post")).toEqual(["201", "400", "413"]);
  expect(Object.keys(Object(at("paths|/chat/completions|post|responses")))).toEqual([
    "200",
    "400",
    "401",
    "402",
    "403",
    "404",
    "408",
    "413",
    "429",
    "500",
    "502",
    "503",
    "504",
    "default",
  ]);
  expect(Object.keys(Object(at("paths|/chat/completions|post|responses|200|headers")))).toContain(
    "Server-Timing",
  );
  for (const status of ["400", "402", "404", "502", "504"]) {
    const reference = String(at(`paths|/chat/completions|post|responses|${status}|$ref`));
    expect(Object.keys(Object(atPointer(document, `${reference}/headers`)))).toEqual(
      expect.arrayContaining([
        "X-Service-Provider-Chain",
        "Server-Timing",
        "X-RateLimit-Limit",
        "RateLimit-Policy",
      ]),
    );
  }
  const payment = "components|responses|InferencePaymentRequired|content|application/json";
  expect(at(`${payment}|schema`)).toEqual({ $ref: "#/components/schemas/PaymentError" });
  expect(at(`${payment}|example|error|metadata`)).toMatchObject({
    reason: "balance_too_low",
    affordable_output_tokens: 12,
  });
  expect(at("components|schemas|ErrorMetadata|properties|upstream_error|type")).toBe("object");
  const errorOfMessages =
    "components|responses|MessagesInferenceBadRequest|content|application/json|example";
  expect(at(errorOfMessages)).toMatchObject({
    type: "error",
    error: { type: "invalid_request_error" },
    request_id: expect.any(String),
  });
  const names = (path: string): unknown[] =>
    (at(path) as { name: string }[]).map(({ name }) => name);
  expect(names("paths|/responses|post|parameters")).toEqual(
    expect.arrayContaining(["X-Service-Metadata-Frame", "X-Service-Provider"]),
  );
  expect(
    at("paths|/readyz|get|responses|503|content|application/json|schema|properties|status|const"),
  ).toBe("unready");
  expect(Object.keys(Object(at("paths|/metrics|get|responses|200|content")))).toEqual([
    "text/plain",
  ]);
  expect(Object.keys(Object(at("paths|/logos/{file}|get|responses|200|content")))).toEqual([
    "image/svg+xml",
  ]);
  expect(at("paths|/keys|post|parameters")).toEqual([
    expect.objectContaining({ name: "Idempotency-Key", in: "header" }),
  ]);
  expect(
    at("paths|/keys|post|requestBody|content|application/json|schema|additionalProperties"),
  ).toBe(false);
});

test("groups of usage, the refusal of an explanation and the runs in a run have schemas", async () => {
  const document: unknown = await (await gateway.get("/openapi.json")).json();
  const answerOf = (path: string, method: string): unknown =>
    atPointer(
      document,
      `#/paths/${path.replaceAll("/", "~1")}/${method}/responses/200/content/application~1json/schema`,
    );
  for (const path of [
    "/analytics/usage",
    "/admin/workspaces/{id}/usage",
    "/admin/users/{id}/usage",
  ]) {
    const row = atPointer(answerOf(path, "get"), "#/properties/data/items/properties");
    expect(Object.keys(Object(row))).toEqual(
      expect.arrayContaining(["model", "key_id", "provider", "team_id", "app", "tag"]),
    );
  }
  const explained = atPointer(answerOf("/routing/explain", "post"), "#/properties/error/anyOf");
  expect(explained).toEqual([
    expect.objectContaining({ required: ["code", "message", "metadata"] }),
    { type: "null" },
  ]);
  const nested = { type: "array", items: { $ref: "#/components/schemas/RunNode" } };
  expect(
    atPointer(answerOf("/runs/{id}", "get"), "#/properties/data/properties/runs"),
  ).toMatchObject(nested);
  expect(atPointer(document, "#/components/schemas/RunNode/properties/runs")).toMatchObject(nested);
});
