import { expect, test } from "bun:test";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import { anthropicModelList } from "./models.ts";

const model = (id: string, addedAtMs: number, more: Partial<CatalogModel> = {}): CatalogModel => ({
  id,
  displayName: id.toUpperCase(),
  owner: "acme",
  surface: "chat",
  category: "text",
  contextLength: 1,
  capabilities: [],
  addedAtMs,
  routes: [],
  ...more,
});
const models = [
  model("a/old", 0),
  model("a/new", 86_400_000),
  model("a/middle", 3_600_000),
  model("a/announced", 1, { comingSoon: true }),
  model("a/vectors", 1, { surface: "embeddings", category: "embedding" }),
];
const list = (query: string) => anthropicModelList(models, new URLSearchParams(query));
const ids = (query: string) =>
  (list(query)["data"] as { id: string }[]).map(({ id }) => id).join(" ");

const entry = (id: string, createdAt: string) => ({
  type: "model",
  id,
  display_name: id.toUpperCase(),
  created_at: createdAt,
  lifecycle: "active",
  max_input_tokens: 1,
  max_tokens: null,
});

test("the list has Anthropic's format, newest first", () => {
  expect(list("")).toEqual({
    data: [
      entry("a/new", "1970-01-02T00:00:00.000Z"),
      entry("a/middle", "1970-01-01T01:00:00.000Z"),
      entry("a/old", "1970-01-01T00:00:00.000Z"),
    ],
    has_more: false,
    first_id: "a/new",
    last_id: "a/old",
  });
});

test.each([
  ["limit=1", "a/new", true],
  ["limit=1&after_id=a/new", "a/middle", true],
  ["limit=5&after_id=a/middle", "a/old", false],
  ["limit=1&before_id=a/old", "a/middle", true],
  ["limit=5&before_id=a/old", "a/new a/middle", false],
  ["after_id=a/old", "", false],
])("?%s returns %p, has_more: %p", (query, expected, hasMore) => {
  expect([ids(query), list(query)["has_more"]]).toEqual([expected, hasMore]);
});

test("an invalid limit is refused", () => {
  expect(() => list("limit=0")).toThrow("limit: must be an integer from 1 to 1000.");
});
