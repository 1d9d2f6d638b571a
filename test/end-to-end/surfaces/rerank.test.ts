import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { answering, startSurfaceScene } from "./support/surface-scene.ts";

let scene: Scene;
beforeAll(async () => void (scene = await startSurfaceScene()));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const documents = ["one", { text: "two" }, "three"];

async function rerank(changes: Record<string, unknown> = {}, provider = "acme") {
  const response = await scene.gateway.post(
    "/rerank",
    { model: "acme/rerank", query: "q", documents, ...changes },
    {
      headers: { "x-service-provider": provider },
    },
  );
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

/** Cohere's answer, worst first, with its search units. */
const ranked = (units: number) =>
  answering(() => ({
    id: "r1",
    results: [
      { index: 0, relevance_score: 0.1 },
      { index: 2, relevance_score: 0.9 },
      { index: 1, relevance_score: 0.5 },
    ],
    meta: { billed_units: { search_units: units } },
  }));

test("results are best first, with documents on request, under the caller's model name", async () => {
  scene.acme.script(ranked(1));
  const reply = await rerank({ model: "ACME/rerank", return_documents: true, top_n: 2 });
  expect(reply.body).toEqual({
    id: `rerank-${reply.headers.get("x-service-trace-id")}`,
    model: "ACME/rerank",
    results: [
      { index: 2, relevance_score: 0.9, document: { text: "three" } },
      { index: 1, relevance_score: 0.5, document: { text: "two" } },
    ],
    usage: { prompt_tokens: 1_000, total_tokens: 1_000, search_units: 1, cost: 0.001 },
    meta: { billed_units: { search_units: 1 } },
  });
  expect(scene.acme.requests.at(-1)?.json()).toEqual({
    model: "rerank",
    query: "q",
    documents: ["one", "two", "three"],
    top_n: 2,
  });
  expect(await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"))).toMatchObject({
    promptTokens: 1_000,
    costNano: 1_000_000n,
  });
});

test("texts longer than their search units are billed by length, and documents are omitted by default", async () => {
  scene.acme.script(ranked(1));
  const { body } = await rerank({ query: "x".repeat(8_000) });
  expect(body["usage"]).toEqual({
    prompt_tokens: 2_003,
    total_tokens: 2_003,
    search_units: 1,
    cost: 0.002003,
  });
  expect(at(body, "results.0")).toEqual({ index: 2, relevance_score: 0.9 });
});

test("without search units the texts are billed, and scores outside 0 to 1 are clamped in order", async () => {
  scene.backup.script(
    answering(() => ({
      results: [
        { index: 0, relevance_score: 1.5 },
        { index: 1, relevance_score: -0.5 },
        { index: 2, relevance_score: 2.5 },
      ],
      usage: {
        total_tokens: 99,
      },
    })),
  );
  const { body } = await rerank({}, "backup");
  expect(body["results"]).toEqual([
    { index: 2, relevance_score: 1 },
    { index: 0, relevance_score: 1 },
    { index: 1, relevance_score: 0 },
  ]);
  expect(body["usage"]).toEqual({ prompt_tokens: 3, total_tokens: 3, cost: 0.000006 });
});

test("a field that the provider does not support is named in a header", async () => {
  scene.backup.script(
    answering(({ documents: sent }) => ({
      results: (sent as string[]).map((_, index) => ({ index, relevance_score: 0.5 })),
    })),
  );
  const reply = await rerank({ max_tokens_per_doc: 1, documents: ["twelve"] }, "backup");
  expect([reply.status, reply.headers.get("x-service-translation-loss")]).toEqual([
    200,
    "max_tokens_per_doc",
  ]);
  expect(at(scene.backup.requests.at(-1)?.json(), "documents")).toEqual(["twel"]);
});

test.each<[string, Record<string, unknown>, unknown[]]>([
  ["an unknown document index", { index: 3, relevance_score: 1 }, []],
  [
    "a duplicate document index",
    { index: 0, relevance_score: 1 },
    [{ index: 0, relevance_score: 1 }],
  ],
])("a provider's answer with %s returns 502", async (_, entry, more) => {
  scene.acme.script(
    answering(() => ({
      results: [entry, ...more, { index: 1, relevance_score: 1 }, { index: 2, relevance_score: 1 }],
    })),
  );
  expect(await rerank()).toMatchObject({
    status: 502,
    body: { error: { code: "upstream_error" } },
  });
});

test.each<[string, Record<string, unknown>, number, string]>([
  ["no query", { query: undefined }, 400, "missing_required_fields"],
  [
    "1,001 documents",
    { documents: Array.from({ length: 1_001 }, () => "d") },
    400,
    "invalid_request",
  ],
  ["an invalid document", { documents: [1] }, 400, "invalid_request"],
  ["an invalid top_n", { top_n: 0 }, 400, "invalid_request"],
  ["a model that cannot rerank", { model: "acme/large" }, 400, "model_not_rerank_compatible"],
  ["an unknown model", { model: "acme/none" }, 404, "model_unavailable"],
])("returns an error for %s", async (_, changes, status, code) => {
  expect(await rerank(changes)).toMatchObject({ status, body: { error: { code } } });
});

test("returns 400 for invalid JSON", async () => {
  const response = await scene.gateway.post("/rerank", "{");
  expect([response.status, at(await response.json(), "error.code")]).toEqual([
    400,
    "invalid_request",
  ]);
});
