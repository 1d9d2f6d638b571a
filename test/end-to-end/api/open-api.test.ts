import { afterAll, beforeAll, expect, test } from "bun:test";
import { z } from "zod";
import { endpoints } from "../../../src/endpoints/index.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";

const operationSchema = z.looseObject({
  operationId: z.string(), summary: z.string(),
  responses: z.object({ 200: z.looseObject({ content: z.record(z.string(), z.unknown()).optional() }), default: z.unknown() }).loose(),
});
const documentSchema = z.looseObject({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

/** A redirect, a picture and the metrics, whose types the endpoint table has no name for. */
const withoutContent = new Set(["GET /api/auth/callback/{provider}", "GET /logos/{file}", "GET /favicon.svg", "GET /metrics"]);

test("the document says of every endpoint what a success holds, and names each operation once", async () => {
  const { paths } = documentSchema.parse(await (await gateway.get("/openapi.json")).json());
  const found = new Map<string, z.infer<typeof operationSchema>>();
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (method !== "servers") found.set(`${method.toUpperCase()} ${path}`, operationSchema.parse(operation));
    }
  }
  expect([...found.keys()].sort()).toEqual(endpoints.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`).sort());
  expect(new Set([...found.values()].map(({ operationId }) => operationId)).size).toBe(endpoints.length);
  const silent = [...found].filter(([, { responses }]) => responses[200].content === undefined).map(([name]) => name);
  expect(new Set(silent)).toEqual(withoutContent);
});

const pages = ["/claim", "/join", "/sign-up", "/reset-password", "/verify-email", "/docs"];
test.each(pages)("%s is the page that the document promises", async (path) => {
  const { paths } = documentSchema.parse(await (await gateway.get("/openapi.json")).json());
  const { responses } = operationSchema.parse(paths[path]?.["get"]);
  const type = (await fetch(gateway.origin + path)).headers.get("content-type")?.split(";")[0];
  expect(Object.keys(responses[200].content ?? {})).toEqual([String(type)]);
});
