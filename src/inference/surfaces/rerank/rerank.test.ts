import { describe, expect, test } from "bun:test";
import {
  cohereRerank,
  jinaRerank,
  voyageRerank,
  billedTokens,
  expectedTokens,
  readRerankRequest,
  type RerankDialect,
  type RerankRequest,
} from "./rerank-call.ts";

const dialects: Record<string, RerankDialect> = {
  "cohere-rerank": cohereRerank,
  "jina-rerank": jinaRerank,
  "voyage-rerank": voyageRerank,
};

const body = (changes: Record<string, unknown> = {}) => ({
  model: "m/r",
  query: "q",
  documents: ["one", { text: "two" }],
  ...changes,
});
const request = (changes: Record<string, unknown> = {}): RerankRequest =>
  readRerankRequest(body(changes));

describe("rerank requests", () => {
  const plain: Record<string, object> = {
    "cohere-rerank": { model: "m", query: "q", documents: ["one", "two"] },
    "jina-rerank": { model: "m", query: "q", documents: ["one", "two"], return_documents: false },
    "voyage-rerank": { model: "m", query: "q", documents: ["one", "two"] },
  };
  const bounded: Record<string, { body: object; lost: string[] }> = {
    "cohere-rerank": {
      body: {
        model: "m",
        query: "q",
        documents: ["one", "twelve"],
        top_n: 1,
        max_tokens_per_doc: 1,
      },
      lost: [],
    },
    "jina-rerank": {
      body: {
        model: "m",
        query: "q",
        documents: ["one", "twel"],
        top_n: 1,
        return_documents: false,
      },
      lost: ["max_tokens_per_doc"],
    },
    "voyage-rerank": {
      body: { model: "m", query: "q", documents: ["one", "twel"], top_k: 1 },
      lost: ["max_tokens_per_doc"],
    },
  };

  test.each(Object.keys(dialects))("%s", (name) => {
    expect(dialects[name]?.encode(request({ return_documents: true }), "m")).toEqual({
      body: plain[name] as object,
      losses: [],
    });
    const asked = dialects[name]?.encode(
      request({ documents: ["one", "twelve"], top_n: 1, max_tokens_per_doc: 1 }),
      "m",
    );
    expect([asked?.body, asked?.losses.map(({ field }) => field)]).toEqual([
      bounded[name]?.body,
      bounded[name]?.lost,
    ]);
  });
});

describe("rerank responses", () => {
  const ranked = [
    { index: 1, relevance_score: 0.9, document: "two" },
    { index: 0, relevance_score: 0.1 },
  ];
  const read = [
    { index: 1, score: 0.9 },
    { index: 0, score: 0.1 },
  ];
  test.each<[string, object, object]>([
    [
      "cohere-rerank",
      { id: "r1", results: ranked, meta: { billed_units: { search_units: 2 } } },
      {
        ranked: read,
        searchUnits: 2,
        id: "r1",
      },
    ],
    ["cohere-rerank", { results: ranked }, { ranked: read }],
    ["jina-rerank", { results: ranked, usage: { total_tokens: 5 } }, { ranked: read }],
    [
      "voyage-rerank",
      { object: "list", data: ranked, usage: { total_tokens: 5 } },
      { ranked: read },
    ],
  ])("%s %#", (name, answer, part) =>
    expect(dialects[name]?.decode(answer)).toEqual(part as never),
  );

  test.each(Object.keys(dialects))("%s: an invalid response is undefined", (name) => {
    for (const entry of [
      { index: 0 },
      { index: 0.5, relevance_score: 1 },
      { index: 0, relevance_score: "1" },
      null,
    ]) {
      expect(dialects[name]?.decode({ results: [entry], data: [entry] })).toBeUndefined();
    }
    expect(dialects[name]?.decode({})).toBeUndefined();
  });
});

describe("billed rerank tokens", () => {
  test("are four characters per token of the query and all documents", () => {
    expect(billedTokens(request({ query: "12345", documents: ["678", "9012"] }))).toBe(3);
  });
  test("are at least 1,000 per search unit that the provider reports", () => {
    expect(billedTokens(request(), 2)).toBe(2_000);
    expect(billedTokens(request({ query: "x".repeat(12_000) }), 2)).toBe(3_002);
  });
  test("are expected as one search unit per hundred documents for a hold", () => {
    expect(expectedTokens(request({ documents: Array.from({ length: 101 }, () => "d") }))).toBe(
      2_000,
    );
  });
});

describe("readRerankRequest refuses and names the field for", () => {
  test.each<[string, Record<string, unknown>, string, string]>([
    ["no model", { model: undefined }, "missing_required_fields", "model"],
    ["no query", { query: "" }, "missing_required_fields", "query"],
    ["no documents", { documents: undefined }, "missing_required_fields", "documents"],
    ["a query that is not a string", { query: 5 }, "invalid_request", "query"],
    ["documents that are not a list", { documents: "one" }, "invalid_request", "documents"],
    ["an empty list", { documents: [] }, "invalid_request", "documents"],
    [
      "1,001 documents",
      { documents: Array.from({ length: 1_001 }, () => "d") },
      "invalid_request",
      "documents",
    ],
    ["a document that is not a string", { documents: ["a", 5] }, "invalid_request", "documents[1]"],
    [
      "a document without a text",
      { documents: [{ title: "a" }] },
      "invalid_request",
      "documents[0]",
    ],
    ["top_n of 0", { top_n: 0 }, "invalid_request", "top_n"],
    ["top_n as a string", { top_n: "2" }, "invalid_request", "top_n"],
    [
      "return_documents as a string",
      { return_documents: "yes" },
      "invalid_request",
      "return_documents",
    ],
    ["max_tokens_per_doc of 0", { max_tokens_per_doc: 0 }, "invalid_request", "max_tokens_per_doc"],
    [
      "a session id that is too long",
      { session_id: "s".repeat(257) },
      "invalid_request",
      "session_id",
    ],
  ])("%s", (_, changes, code, param) => {
    expect(() => request(changes)).toThrow(expect.objectContaining({ code, param }));
  });

  test("but 1,000 documents are accepted", () => {
    expect(request({ documents: Array.from({ length: 1_000 }, () => "d") }).documents).toHaveLength(
      1_000,
    );
  });
});
