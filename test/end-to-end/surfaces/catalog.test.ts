import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writePdf } from "../../support/documents/write-pdf.ts";
import { startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { at } from "../scenarios/support/at.ts";

let gateway: TestGateway;
beforeAll(async () => void (gateway = await startGateway({ sandbox: true })));
afterAll(() => gateway.stop());

/** The sandbox's model of each surface, its category, and a request that it answers. */
const surfaces: [path: string, model: string, category: string, body: object][] = [
  ["/embeddings", "sandbox/embed:free", "embedding", { input: "text" }],
  ["/rerank", "sandbox/rerank:free", "text", { query: "q", documents: ["d"] }],
  ["/moderations", "sandbox/moderate:free", "text", { input: "text" }],
  [
    "/decisions",
    "sandbox/decide:free",
    "text",
    { state: "s", questions: { q: { type: "noul", instructions: "?" } } },
  ],
  [
    "/systemone",
    "sandbox/decide:free",
    "text",
    { state: "s", questions: { q: { type: "noul", instructions: "?" } } },
  ],
];

describe.each(surfaces)("%s after the first start", (path, model, category, body) => {
  test("is served by the sandbox model", async () => {
    const response = await gateway.post(path, { model, ...body });
    expect([response.status, response.headers.get("x-service-model")]).toEqual([200, model]);
  });

  test("has a reachable model in the catalog, with its category and links", async () => {
    const list = (await (await gateway.get("/models")).json()) as { data: { id: string }[] };
    const details = `/api/v1/models/${model}`;
    expect(list.data.find(({ id }) => id === model)).toMatchObject({
      category,
      links: { details, metrics: `${details}/metrics` },
    });
    for (const link of [details, `${details}/metrics`])
      expect((await fetch(gateway.origin + link)).status).toBe(200);
  });

  test("is in the OpenAPI document with its request and response schemas", async () => {
    const document: unknown = await (await gateway.get("/openapi.json")).json();
    const operation = (document as { paths: Record<string, { post?: unknown }> }).paths[path]?.post;
    expect(at(operation, "requestBody.content.application/json.schema.type")).toBe("object");
    expect(at(operation, "responses.200.content.application/json.schema.required")).toBeArray();
  });
});

interface Operation {
  parameters?: { name: string; in: string; required: boolean }[];
  responses: Record<string, { headers?: Record<string, unknown> }>;
}

/**
 * What the OpenAPI document says of each route beside the body: headers that mean something to it,
 * and headers and statuses of its answers.
 */
const described: [path: string, parameters: string[], headers: string[], statuses: string[]][] = [
  [
    "/embeddings",
    [
      "header gw-cache-ttl",
      "header gw-skip-cache",
      "header gw-cache-key",
      "header X-Routing-Strategy",
      "header x-session-id",
    ],
    ["X-Service-Cache-Status"],
    ["200", "default"],
  ],
  [
    "/v2/embed",
    [
      "header gw-cache-ttl",
      "header gw-skip-cache",
      "header gw-cache-key",
      "header X-Routing-Strategy",
      "header x-session-id",
    ],
    ["X-Service-Cache-Status"],
    ["200", "default"],
  ],
  ["/v2/rerank", [], [], ["200", "default"]],
  ["/ocr/extract", [], [], ["200", "default"]],
  [
    "/documents/parse",
    ["query wait_seconds", "header Idempotency-Key"],
    ["X-Service-Documents-Pages"],
    ["200", "202", "default"],
  ],
];

/** What every answer says, and how each of these routes may fail. */
const everyAnswer = [
  "X-Service-Trace-Id",
  "X-Request-Id",
  "X-RateLimit-Limit",
  "X-RateLimit-Window",
  "X-RateLimit-Tier",
];
const everyError = ["400", "401", "403", "413", "429", "500", "503"];

test.each(described)(
  "%s is documented with its headers and statuses",
  async (path, parameters, headers, statuses) => {
    const document = (await (await gateway.get("/openapi.json")).json()) as {
      paths: Record<string, { post: Operation }>;
    };
    const { parameters: found = [], responses } = document.paths[path]?.post ?? { responses: {} };
    expect(found.map((parameter) => `${parameter.in} ${parameter.name}`)).toEqual(parameters);
    expect(Object.keys(responses["200"]?.headers ?? {})).toEqual(
      expect.arrayContaining([...everyAnswer, ...headers]),
    );
    expect(Object.keys(responses)).toEqual(expect.arrayContaining([...statuses, ...everyError]));
  },
);

test("images are read after the first start, and documents need the caller's own provider key", async () => {
  const source = { type: "url", url: "https://example.com/a.pdf", file_name: "a.pdf" };
  const refused = await gateway.post("/documents/parse", { source });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { code: "byok_required" } },
  ]);
  await gateway.post(
    "/auth/byok",
    { provider_id: "sandbox", api_key: "any-key-at-all" },
    {
      headers: { authorization: `Bearer ${testManagementKey}` },
    },
  );
  const parsed = await gateway.post("/documents/parse?wait_seconds=30", { source });
  expect([parsed.status, parsed.headers.get("x-service-documents-pages")]).toEqual([200, "2"]);
  const pdf = Buffer.from(
    writePdf([{ texts: [{ text: "A page with text of its own", x: 60, y: 780 }] }]),
  );
  const extracted = await gateway.post("/ocr/extract", { image: pdf.toString("base64") });
  expect([extracted.status, await extracted.json()]).toMatchObject([
    200,
    { text: "A page with text of its own" },
  ]);
});

test("embedding models are found by their category", async () => {
  const list = (await (await gateway.get("/models?category=embedding")).json()) as {
    data: { id: string }[];
  };
  expect(list.data.map(({ id }) => id)).toEqual(["sandbox/embed:free"]);
});
