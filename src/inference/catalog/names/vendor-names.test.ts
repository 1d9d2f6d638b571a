import { expect, test } from "bun:test";
import { findModel, resolveModel } from "../../routing/resolve-models.ts";
import { buildCatalog } from "../build-catalog.ts";
import { configuredProviderSchema } from "../configured/configured-provider.ts";

const pricing = { prompt: "10", completion: "50" };
const decide = configuredProviderSchema.parse({
  id: "judge",
  base_url: "http://127.0.0.1:1/v1",
  dialect: { decisions: "decisions" },
  api_key: "k",
  models: [{ id: "judge/verdict-1:free", upstream_model: "Verdict-One", surface: "decisions" }],
});
const ids = [["acme/twin", "other/twin"], ["acme/only"]].map((models, index) =>
  configuredProviderSchema.parse({
    id: `own-${index}`,
    base_url: "http://127.0.0.1:1/v1",
    dialect: "openai-chat",
    api_key: "k",
    models: models.map((id) => ({ id, pricing })),
  }),
);
const options = {
  environment: { ANTHROPIC_API_KEY: "k" },
  configuredProviders: [decide, ...ids],
  nowMs: 0,
};
const catalog = buildCatalog(options);

/** Ids as vendors' clients send them, and what the catalog has them as. */
test.each([
  ["claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"],
  ["claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5-20250929"],
  ["claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5-20251001"],
  ["claude-opus-4-1-20250805", "anthropic/claude-opus-4-1-20250805"],
  ["claude-sonnet-4-6", "anthropic/claude-sonnet-4-6"],
  ["claude-sonnet-4-6-20270101", "anthropic/claude-sonnet-4-6"],
  ["anthropic/claude-sonnet-4-6-20270101", "anthropic/claude-sonnet-4-6"],
  ["claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"],
  ["claude-opus-4-0", "anthropic/claude-opus-4"],
  ["claude-3-7-sonnet-latest", "anthropic/claude-3-7-sonnet-20250219"],
  ["claude-3-opus", "anthropic/claude-3-opus-20240229"],
  ["claude-sonnet-4-5@20250929", "anthropic/claude-sonnet-4-5"],
  ["CLAUDE-Sonnet-4-5", "anthropic/claude-sonnet-4-5"],
  // What Claude Code 2.1.329 asks for by default, as `opus`, `best` and `opus[1m]`, whose suffix it
  // takes off itself.
  ["claude-opus-5-5", "anthropic/claude-opus-5-5"],
  ["claude-opus-5.5", "anthropic/claude-opus-5-5"],
  ["claude-opus-5-5-20260915", "anthropic/claude-opus-5-5"],
  ["claude-opus-5", "anthropic/claude-opus-5"],
  ["claude-fable-5-1", "anthropic/claude-fable-5-1"],
  ["claude-sonnet-5", "anthropic/claude-sonnet-5"],
  ["gpt-6-sol", "openai/gpt-6-sol"],
  ["gpt-5.6", "openai/gpt-5.6-sol"],
  ["gpt-5.3-codex", "openai/gpt-5.3-codex"],
  ["gemini-3.5-flash", "google/gemini-3.5-flash"],
  ["models/gemini-3.5-flash", "google/gemini-3.5-flash"],
  ["gpt-5.5", "openai/gpt-5.5"],
  ["gpt-5.5-2026-04-23", "openai/gpt-5.5"],
  ["openai/gpt-5-2025-08-07", "openai/gpt-5"],
  ["gpt-5-chat-latest", "openai/gpt-5-chat"],
  ["gpt-4o-2024-08-06", "openai/gpt-4o-2024-08-06"],
  ["text-embedding-3-small", "openai/text-embedding-3-small"],
  ["gemini-2.5-flash", "google/gemini-2.5-flash"],
  ["models/gemini-2.5-flash", "google/gemini-2.5-flash"],
  ["azure/gpt-5.5", "openai/gpt-5.5"],
  ["only", "acme/only"],
  ["proxy/acme/only", "acme/only"],
  ["judge/verdict-1", "judge/verdict-1:free"],
  ["verdict-1", "judge/verdict-1:free"],
  ["verdict-one", "judge/verdict-1:free"],
  ["Verdict-One", "judge/verdict-1:free"],
])("resolves %s to %s", (id, expected) => {
  expect(resolveModel(catalog, id).model.id).toBe(expected);
});

test("accepts a suffix after a vendor's own model name", () => {
  const expected = { model: { id: "anthropic/claude-sonnet-4-5" }, sort: "throughput" };
  expect(resolveModel(catalog, "claude-sonnet-4-5:nitro")).toMatchObject(expected);
});

test.each([
  "twin",
  "nobody/only",
  "openai/only",
  "claude-nothing-9",
  "anthropic/claude-nothing-9",
  "models/",
  "-20250101",
  "nothing",
  "gpt-5.5:free",
])("refuses %s", (id) => {
  expect(findModel(catalog, id)).toBeUndefined();
  expect(() => resolveModel(catalog, id)).toThrow(
    expect.objectContaining({ code: "model_unavailable", param: "model" }),
  );
});

/**
 * Ids of agents' defaults that are newer than the catalog: Claude Code's `sonnet`, `opusplan`,
 * `haiku` and `fable`, and Codex 0.169's own. Refused with similar ids and the ways out, or passed
 * to their maker at the operator's price.
 */
test.each([
  ["claude-sonnet-5-5", "anthropic", "anthropic/claude-sonnet-5"],
  ["claude-haiku-5-5", "anthropic", "anthropic/claude-haiku-4-5"],
  ["claude-fable-5-2", "anthropic", "anthropic/claude-fable-5-1"],
  ["gpt-6.1-sol", "openai", "openai/gpt-6-sol"],
])("refuses %s with similar models, or passes it through if configured", (id, maker, similar) => {
  expect(() => resolveModel(catalog, id)).toThrow(
    expect.objectContaining({
      code: "model_unavailable",
      message: expect.stringContaining("catalog.unknown_models: pass_through"),
      metadata: { similar_models: expect.arrayContaining([similar]) },
    }),
  );
  const open = buildCatalog({ ...options, unknownModelPricing: pricing });
  expect(resolveModel(open, id).model).toMatchObject({
    id: `${maker}/${id}`,
    routes: [{ upstreamModel: id, provider: { id: maker } }],
  });
});

test("refuses a context suffix on a model that is not a router, with an explanation", () => {
  const message = expect.stringMatching(
    /is for service\/auto: ask for anthropic\/claude-opus-5-5, whose window has 1000000 tokens/,
  );
  expect(() => resolveModel(catalog, "claude-opus-5-5[1m]")).toThrow(
    expect.objectContaining({ code: "model_unavailable", message }),
  );
});

test("passes unknown ids to the vendor's own provider at the configured price, if allowed", () => {
  const open = buildCatalog({ ...options, unknownModelPricing: pricing });
  const { model } = resolveModel(open, "Claude-Sonnet-5-5");
  expect(model).toMatchObject({
    id: "anthropic/claude-sonnet-5-5",
    surface: "chat",
    routes: [{ provider: { id: "anthropic" } }],
  });
  expect(model.routes[0]?.price?.base).toMatchObject({
    inputTokens: 10_000_000n,
    outputTokens: 50_000_000n,
  });
  expect(resolveModel(open, "openai/gpt-9").model.routes[0]).toMatchObject({
    upstreamModel: "gpt-9",
    provider: { id: "openai" },
  });
  expect(resolveModel(open, "gpt-9:floor")).toMatchObject({
    model: { id: "openai/gpt-9" },
    sort: "price",
  });
  expect(resolveModel(open, "claude-sonnet-5-5").model).toBe(
    resolveModel(open, "claude-sonnet-5-5").model,
  );
  expect(resolveModel(open, "claude-sonnet-4-5").model.routes.length).toBeGreaterThan(0);
  for (const id of ["nobody/nothing", "nothing", "gpt-9:free"]) {
    expect(() => resolveModel(open, id)).toThrow(
      expect.objectContaining({ code: "model_unavailable" }),
    );
  }
});
