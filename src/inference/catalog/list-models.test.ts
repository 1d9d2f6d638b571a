import { describe, expect, test } from "bun:test";
import { countModels, listModels, modelCounts, parseModelListQuery } from "./list-models.ts";
import {
  hasPlatformCredential,
  isReachable,
  routeBaseUrl,
  routeDialect,
  surfaceBaseUrl,
  type CatalogModel,
  type CatalogSnapshot,
  type Provider,
  type UpstreamDialect,
} from "./model.ts";

const provider = (id: string, more: Partial<Provider> = {}): Provider => ({
  id,
  name: `${id.toUpperCase()} Inference`,
  baseUrl: `https://${id}.example`,
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  credentialHeader: { name: "authorization", prefix: "Bearer " },
  apiKey: "key",
  dataPolicy: {},
  timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1, totalMs: 1 },
  deviations: {},
  ...more,
});

const one = provider("one");
const two = provider("two", { apiKey: undefined as never });

const priced = { price: { version: "v", base: { inputTokens: 1n, outputTokens: 1n } } };

const model = (id: string, by: Provider, more: Partial<CatalogModel> = {}): CatalogModel => ({
  id,
  displayName: id,
  owner: id.split("/")[0] ?? "",
  surface: "chat",
  category: "text",
  contextLength: 1000,
  capabilities: ["chat"],
  addedAtMs: 1,
  routes: [{ provider: by, upstreamModel: id, ...priced }],
  ...more,
});

const models = [
  model("acme/embed", one, {
    surface: "embeddings",
    category: "embedding",
    capabilities: ["embeddings"],
    addedAtMs: 3,
  }),
  model("acme/large", one, {
    contextLength: 200_000,
    capabilities: ["chat", "function-calling", "vision"],
    addedAtMs: 2,
  }),
  model("acme/small", one, { capabilities: ["chat", "function_calling"], addedAtMs: 4 }),
  model("other/only-byok", two, { contextLength: 200_000 }),
];

const snapshot: CatalogSnapshot = {
  version: "test",
  models: new Map(models.map((entry) => [entry.id, entry])),
  providers: new Map([one, two].map((entry) => [entry.id, entry])),
};

const sendable: ReadonlySet<UpstreamDialect> = new Set(["openai-chat", "openai-embeddings"]);
const isRoutable = (entry: CatalogModel): boolean =>
  entry.routes.some((route) => isReachable(route, entry, sendable));
const volumes: Record<string, number> = { "acme/small": 5, "acme/embed": 7 };

const list = (queryText: string): string[] =>
  listModels(snapshot.models.values(), {
    query: parseModelListQuery(new URLSearchParams(queryText)),
    isRoutable,
    weeklyRequests: (id) => volumes[id] ?? 0,
  }).map(({ id }) => id.split("/")[1] ?? "");

describe("filters and sorts", () => {
  test.each([
    ["", ["embed", "large", "small"]],
    ["all=1", ["embed", "large", "small", "only-byok"]],
    ["all=TRUE", ["embed", "large", "small", "only-byok"]],
    ["all=yes", ["embed", "large", "small", "only-byok"]],
    ["all=0", ["embed", "large", "small"]],
    ["include=unavailable", ["embed", "large", "small", "only-byok"]],
    ["include=all", ["embed", "large", "small", "only-byok"]],
    ["provider=acme", ["embed", "large", "small"]],
    ["provider=one", ["embed", "large", "small"]],
    ["provider=ONE+Inference", ["embed", "large", "small"]],
    ["provider=two", []],
    ["provider=two&all=1", ["only-byok"]],
    ["category=embedding", ["embed"]],
    ["category=image", []],
    ["min_context=200000", ["large"]],
    ["min_context=200001", []],
    ["capability=vision", ["large"]],
    ["capability=function_calling", ["large", "small"]],
    ["capability=function-calling", ["large", "small"]],
    ["capability=vision&capability=function_calling", ["large"]],
    ["supported=vision,function_calling", ["large"]],
    ["capability=telepathy", []],
    ["sort=added", ["small", "embed", "large"]],
    ["sort=newest", ["small", "embed", "large"]],
    ["sort=new", ["small", "embed", "large"]],
    ["sort=created", ["small", "embed", "large"]],
    ["sort=usage", ["embed", "small", "large"]],
    ["sort=top", ["embed", "small", "large"]],
    ["sort=top-usage", ["embed", "small", "large"]],
    ["sort=popular", ["embed", "small", "large"]],
    ["sort=name", ["embed", "large", "small"]],
    ["sort=id&provider=acme&capability=chat", ["large", "small"]],
  ])("?%s", (queryText, expected) => {
    expect(list(queryText)).toEqual(expected);
  });

  test.each(["min_context=much", "min_context=-1", "sort=colour"])(
    "?%s is refused",
    (queryText) => {
      expect(() => list(queryText)).toThrow();
    },
  );
});

test("counts the models that the caller can use, and the models of each provider", () => {
  expect(countModels(snapshot, isRoutable)).toBe(3);
  expect([...modelCounts(snapshot)]).toEqual([
    ["one", 3],
    ["two", 1],
  ]);
});

describe("whether a route is usable without a BYOK key", () => {
  const base = model("acme/large", one);
  const [route] = base.routes;
  if (route === undefined) throw new Error("no route");
  const reach = (
    changed: Partial<typeof route>,
    by: Partial<Provider> = {},
    more: Partial<CatalogModel> = {},
  ): boolean =>
    isReachable(
      { ...route, provider: { ...one, ...by }, ...changed },
      { ...base, ...more },
      sendable,
    );

  test.each<[string, boolean, boolean]>([
    ["with a credential, an address, a price and a supported dialect", reach({}), true],
    ["with the empty credential of a local server", reach({}, { apiKey: "" }), true],
    [
      "with signing keys",
      reach(
        {},
        {
          apiKey: undefined as never,
          signing: { type: "google-service-account", key: { json: "{}" } },
        },
      ),
      true,
    ],
    [
      "with only an address for its dialect",
      reach({}, { baseUrl: undefined as never, dialectBaseUrls: { "openai-chat": "https://a" } }),
      true,
    ],
    ["without a credential", reach({}, { apiKey: undefined as never }), false],
    ["without an address", reach({}, { baseUrl: undefined as never }), false],
    ["without a price", reach({ price: undefined as never }), false],
    ["in an unsupported dialect", reach({ dialect: "openai-responses" }), false],
    ["on a surface that the provider lacks", reach({}, {}, { surface: "rerank" }), false],
    ["before the model is live", reach({}, {}, { comingSoon: true }), false],
  ])("%s: %p", (_, reached, expected) => {
    expect(reached).toBe(expected);
  });

  test("the dialect of a route and the address of a surface take precedence", () => {
    expect(routeDialect({ ...route, dialect: "openai-responses" }, "chat")).toBe(
      "openai-responses",
    );
    expect(routeDialect(route, "embeddings")).toBe("openai-embeddings");
    const elsewhere = { ...one, surfaceBaseUrls: { rerank: "https://rerank.example" } };
    expect(surfaceBaseUrl(elsewhere, "rerank")).toBe("https://rerank.example");
    expect(surfaceBaseUrl(elsewhere, "chat")).toBe("https://one.example");
    const byDialect = {
      ...one,
      dialectBaseUrls: { "anthropic-messages": "https://messages.example" },
    };
    expect(
      routeBaseUrl({ ...route, provider: byDialect, dialect: "anthropic-messages" }, "chat"),
    ).toBe("https://messages.example");
    expect(routeBaseUrl({ ...route, provider: byDialect }, "chat")).toBe("https://one.example");
  });
});

test("the simulated provider does not count as a platform credential", () => {
  const only = (entry: Provider): CatalogSnapshot => ({
    ...snapshot,
    providers: new Map([[entry.id, entry]]),
  });
  expect(hasPlatformCredential(snapshot)).toBe(true);
  expect(hasPlatformCredential(only(two))).toBe(false);
  expect(hasPlatformCredential(only({ ...one, simulated: true }))).toBe(false);
});
