import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { at } from "../scenarios/support/at.ts";

let gateway: TestGateway;
beforeAll(async () => void (gateway = await startGateway({ sandbox: true })));
afterAll(() => gateway.stop());

/** The sandbox's model of each surface, its category, and a request that it answers. */
const surfaces: [path: string, model: string, category: string, body: object][] = [
  ["/embeddings", "sandbox/embed:free", "embedding", { input: "text" }],
  ["/rerank", "sandbox/rerank:free", "text", { query: "q", documents: ["d"] }],
  ["/moderations", "sandbox/moderate:free", "text", { input: "text" }],
  ["/decisions", "sandbox/decide:free", "text", { state: "s", questions: { q: { type: "noul", instructions: "?" } } }],
  ["/systemone", "sandbox/decide:free", "text", { state: "s", questions: { q: { type: "noul", instructions: "?" } } }],
];

describe.each(surfaces)("%s after the first start", (path, model, category, body) => {
  test("is served", async () => {
    const response = await gateway.post(path, { model, ...body });
    expect([response.status, response.headers.get("x-service-model")]).toEqual([200, model]);
  });

  test("has a model in the catalog that can be reached, with its category and links", async () => {
    const list = await (await gateway.get("/models")).json() as { data: { id: string }[] };
    const details = `/api/v1/models/${model}`;
    expect(list.data.find(({ id }) => id === model)).toMatchObject({ category, links: { details, metrics: `${details}/metrics` } });
    for (const link of [details, `${details}/metrics`]) expect((await fetch(gateway.origin + link)).status).toBe(200);
  });

  test("stands in the OpenAPI document with what goes in and what comes out", async () => {
    const document: unknown = await (await gateway.get("/openapi.json")).json();
    const operation = (document as { paths: Record<string, { post?: unknown }> }).paths[path]?.post;
    expect(at(operation, "requestBody.content.application/json.schema.type")).toBe("object");
    expect(at(operation, "responses.200.content.application/json.schema.required")).toBeArray();
  });
});

test("embedding models are found by their category", async () => {
  const list = await (await gateway.get("/models?category=embedding")).json() as { data: { id: string }[] };
  expect(list.data.map(({ id }) => id)).toEqual(["sandbox/embed:free"]);
});
