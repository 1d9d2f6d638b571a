import { describe, expect, test } from "bun:test";
import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import type { CatalogModel, CatalogSnapshot } from "../catalog/model.ts";
import { isModelAllowed, nameWarnings, resolveModel } from "./resolve-models.ts";

const model = (id: string, more: Partial<CatalogModel> = {}): CatalogModel => ({
  id,
  displayName: id,
  owner: "acme",
  surface: "chat",
  category: "text",
  contextLength: 8_000,
  capabilities: [],
  addedAtMs: 0,
  routes: [],
  ...more,
});

const large = model("acme/large");
const gift = model("acme/gift:free");
const auto = model("service/auto", {
  router: { name: "auto", members: [large, gift], qualityCount: 0, missing: [] },
});
const soon = model("acme/soon", { comingSoon: true });
const odd = model("acme/odd:thinking");

const catalog: CatalogSnapshot = {
  version: "test",
  models: new Map([large, gift, auto, soon, odd].map((each) => [each.id, each])),
  providers: new Map(),
  aliases: new Map([["acme/big", "acme/large"]]),
};

describe("resolveModel", () => {
  test.each<[string, CatalogModel, Record<string, unknown>]>([
    ["acme/large", large, {}],
    ["ACME/Large", large, {}],
    ["acme/big", large, {}],
    ["acme/big:nitro", large, { sort: "throughput" }],
    ["acme/large:floor", large, { sort: "price" }],
    ["acme/large:floor:floor", large, { sort: "price" }],
    ["acme/gift:free", gift, {}],
    ["acme/gift:FREE:fast", gift, { sort: "latency" }],
    ["acme/gift:fast:free", gift, { sort: "latency" }],
    ["acme/odd:thinking:exacto", odd, { sort: "exacto" }],
    ["service/auto[1m]", auto, { minContext: 1_000_000 }],
    ["service/auto[500K]:exacto", auto, { minContext: 500_000, sort: "exacto" }],
    ["Service/Auto:Exacto[200k]", auto, { minContext: 200_000, sort: "exacto" }],
  ])("resolves %s", (id, expected, shortcuts) => {
    expect(resolveModel(catalog, id)).toEqual({
      model: expected,
      isRouter: expected === auto,
      ...shortcuts,
    });
  });

  test.each([
    ["acme/none", "model_unavailable"],
    ["acme/large:cheapest", "model_unavailable"],
    ["acme/large:free", "model_unavailable"],
    ["acme/large[1m]", "model_unavailable"],
    ["service/auto[1g]", "model_unavailable"],
    ["service/auto[]", "model_unavailable"],
    ["acme/soon", "model_unavailable"],
    ["acme/soon:floor", "model_unavailable"],
    [":free", "model_unavailable"],
    ["", "model_unavailable"],
    ["acme/large:constructor", "model_unavailable"],
    ["acme/large:floor:nitro", "bad_request"],
    ["service/auto[1m][2m]", "bad_request"],
  ])("refuses %s", (id, code) => {
    expect(() => resolveModel(catalog, id)).toThrow(
      expect.objectContaining({ code, param: "model" }),
    );
  });

  test("reports the missing free copy of a paid model", () => {
    expect(() => resolveModel(catalog, "acme/large:free")).toThrow(/no free copy of acme\/large/);
  });
});

test("names of models that the catalog lacks are warned of, each with the likely id", () => {
  const named = new Map<string, AliasTarget>([
    ["fast", "acme/big"],
    ["quick", "acme/big:nitro"],
    ["mine", "@preset/mine"],
    ["again", "fast"],
    ["split", ["acme/large", { model: ["acme/larg", "other/none"], weight: 1 }]],
  ]);
  expect(nameWarnings({ ...catalog, named })).toEqual([
    {
      key: "aliases.split",
      message: "acme/larg is not in the catalog; did you mean acme/large?",
    },
    { key: "aliases.split", message: "other/none is not in the catalog" },
  ]);
});

describe("the model list of a key allows a model", () => {
  test.each<[string, readonly string[] | null, CatalogModel, boolean]>([
    ["if there is no list", null, large, true],
    ["if it contains the model", ["acme/large"], large, true],
    ["not if it contains only another model", ["acme/gift:free"], large, false],
    ["not if it is empty", [], large, false],
    ["if it contains a member of the router", ["acme/gift:free"], auto, true],
    ["not if it contains only the router", ["service/auto"], auto, false],
  ])("%s", (_, allowed, asked, expected) => {
    expect(isModelAllowed(allowed, asked)).toBe(expected);
  });
});
