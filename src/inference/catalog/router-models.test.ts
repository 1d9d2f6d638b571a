import { describe, expect, test } from "bun:test";
import { buildCatalog } from "./build-catalog.ts";
import type { CatalogFacts, FactRow } from "./catalog-facts.ts";
import { configuredProviderSchema } from "./configured/configured-provider.ts";
import { modelObject, type ModelObject } from "./model-object.ts";
import { isReachable, type CatalogModel, type CatalogSnapshot } from "./model.ts";
import type { ConfiguredRouters } from "./router-models.ts";

/** `owner/model released price context capabilities`, all served by one provider with a key. */
function row(text: string): FactRow {
  const [id = "", released = "", price = "1", context = "256", ...capabilities] = text.split(" ");
  return {
    id,
    released,
    provider: "openrouter",
    upstream: id,
    name: id,
    surface: id.includes("embed") ? "embeddings" : "chat",
    context: Number(context) * 1_000,
    prices: { input: price, output: price },
    capabilities: ["chat", ...capabilities],
  };
}

const tools = "function-calling";

const facts = (...rows: string[]): CatalogFacts => ({
  source: "test",
  licence: "",
  snapshot: "2026-07-02",
  units: "",
  aliases: { "claude/opus": "anthropic/opus-9" },
  rows: rows.map(row),
});

const rows = [
  `anthropic/opus-8 2026-01-01 5 256 ${tools} reasoning`,
  `anthropic/opus-9 2026-05-01 5 256 ${tools} reasoning`,
  `anthropic/opus-9-fast 2026-06-01 5 256 ${tools} reasoning`,
  `anthropic/opus-9-20260501 2026-06-01 5 256 ${tools} reasoning`,
  `anthropic/fable-9 2026-06-02 50 256 ${tools} reasoning`,
  `google/gem-9-flash 2026-06-20 1 256 ${tools} vision`,
  `mistralai/devstral-9 2026-06-21 1 256 ${tools} reasoning`,
  `nousresearch/hermes-9-70b 2025-01-01 1 128 ${tools}`,
  `openai/gpt-9 2026-04-01 4 400 ${tools} reasoning vision`,
  `openai/gpt-9-mini 2026-04-02 1 400 ${tools} reasoning`,
  `openai/gpt-9-preview 2026-06-01 4 400 ${tools}`,
  "openai/guard-9 2026-06-09 1 400",
  "openai/text-embed-9 2026-06-09 1 8",
  `qwen/qwen9-70b 2026-03-01 1 128 ${tools}`,
  `qwen/qwen9-8b 2026-03-02 1 128 ${tools}`,
  `qwen/qwen9-70b:free 2026-03-01 0 64 ${tools}`,
  "tiny/one:free 2026-03-01 0 128",
  `upstart/great-9 2026-06-30 1 256 ${tools} reasoning`,
];

function build(
  options: { routers?: ConfiguredRouters; rows?: string[]; key?: boolean } = {},
): CatalogSnapshot {
  return buildCatalog({
    environment: options.key === false ? {} : { OPENROUTER_API_KEY: "k" },
    configuredProviders: [],
    nowMs: 0,
    facts: facts(...(options.rows ?? rows)),
    ...(options.routers === undefined ? {} : { configuredRouters: options.routers }),
  });
}

const router = (catalog: CatalogSnapshot, name: string): CatalogModel =>
  catalog.models.get(`service/${name}`) as CatalogModel;
const members = (catalog: CatalogSnapshot, name: string): string =>
  router(catalog, name)
    .router?.members.map(({ id }) => id.slice(id.indexOf("/") + 1))
    .join(" ") ?? "";

describe("default pools", () => {
  test.each([
    ["auto", "opus-9 gpt-9 qwen9-70b gem-9-flash gpt-9-mini qwen9-8b", 3],
    ["free", "qwen9-70b:free one:free", 0],
    ["cowork", "devstral-9 opus-9 gpt-9", 3],
    ["hermes", "hermes-9-70b qwen9-70b", 2],
    ["latest", "gem-9-flash opus-9 gpt-9-mini qwen9-8b", 4],
  ])("of service/%s have their expected members", (name, expected, qualityCount) => {
    const catalog = build();
    expect(members(catalog, name)).toBe(expected);
    expect(router(catalog, name).router?.qualityCount).toBe(qualityCount);
  });

  test("have at most eight large and four small models", () => {
    const makers = [
      "anthropic",
      "deepseek",
      "google",
      "meta-llama",
      "minimax",
      "mistralai",
      "moonshotai",
      "openai",
      "qwen",
      "x-ai",
    ];
    const rowsOf = (maker: string) =>
      ["big", "mini"].map((size) => `${maker}/${size}-9 2026-01-01 1 256 ${tools}`);
    const catalog = build({ rows: makers.flatMap(rowsOf) });
    expect(router(catalog, "auto").router?.members).toHaveLength(12);
  });

  test("use any available models, with tool support first, if no large vendor is reachable", () => {
    const catalog = build({
      rows: ["acme/plain 2026-06-01 1 8", `acme/tools 2026-01-01 1 8 ${tools}`],
    });
    expect(
      ["auto", "free", "cowork", "hermes", "latest"].map((name) => members(catalog, name)),
    ).toEqual(["tools plain", "", "tools", "", "plain"]);
  });

  test("are empty but known if no model is reachable", () => {
    const catalog = build({ key: false });
    expect(
      ["auto", "free", "cowork", "hermes", "latest"].map((name) => members(catalog, name)),
    ).toEqual(["", "", "", "", ""]);
    expect(router(catalog, "auto").capabilities).toEqual(["chat"]);
  });

  test("include a simulated model only if no real one exists", () => {
    const simulatedProvider = configuredProviderSchema.parse({
      id: "sandbox",
      base_url: "http://127.0.0.1:1",
      api_key: "k",
      models: [{ id: "sandbox/chat:free", capabilities: ["chat", tools] }],
    });
    const withKey = (key: object): CatalogSnapshot =>
      buildCatalog({
        environment: { ...key },
        configuredProviders: [],
        nowMs: 0,
        facts: facts(...rows),
        simulatedProvider,
      });
    expect(members(withKey({}), "auto")).toBe("chat:free");
    expect(members(withKey({ OPENROUTER_API_KEY: "k" }), "free")).toBe("qwen9-70b:free one:free");
  });
});

describe("configured pools", () => {
  test("have the quality members first, then the others in order, with case-insensitive ids and aliases", () => {
    const catalog = build({
      routers: {
        "service/auto": {
          members: ["openai/gpt-9-mini", "Anthropic/Opus-8", "claude/opus"],
          quality: ["claude/opus"],
        },
      },
    });
    expect(members(catalog, "auto")).toBe("opus-9 gpt-9-mini opus-8");
    expect(router(catalog, "auto").router).toMatchObject({ qualityCount: 1, missing: [] });
    expect(members(catalog, "hermes")).toBe("hermes-9-70b qwen9-70b");
  });

  test("give the reason for a named model that is not a member", () => {
    const catalog = build({
      routers: {
        "service/auto": {
          members: ["acme/gone", "openai/text-embed-9", "openai/gpt-9"],
          quality: [],
        },
        "service/free": { members: ["openai/gpt-9", "tiny/one:free"], quality: [] },
      },
    });
    expect(router(catalog, "auto").router?.missing).toEqual([
      { id: "acme/gone", reason: "not in the catalog" },
      { id: "openai/text-embed-9", reason: "not a chat model" },
    ]);
    expect(members(catalog, "auto")).toBe("gpt-9");
    expect(members(catalog, "free")).toBe("one:free");
    expect(router(catalog, "free").router?.missing).toEqual([
      { id: "openai/gpt-9", reason: "not free" },
    ]);
  });
});

describe("the model object of a routing preset", () => {
  function shown(name: string): ModelObject {
    const model = router(build(), name);
    return modelObject(model, {
      reachable: (route) => isReachable(route, model, new Set(["openai-chat"])),
    });
  }

  test("has the capabilities of its members and their price range", () => {
    expect(shown("auto")).toMatchObject({
      id: "service/auto",
      object: "model",
      provider: "service",
      category: "text",
      context_length: 400_000,
      providers: ["openrouter"],
      members: [
        "anthropic/opus-9",
        "openai/gpt-9",
        "qwen/qwen9-70b",
        "google/gem-9-flash",
        "openai/gpt-9-mini",
        "qwen/qwen9-8b",
      ],
      capabilities: ["chat", tools, "reasoning", "vision"],
      per_upstream: [],
      pricing: {
        prompt: "0.000005",
        completion: "0.000005",
        input_per_1m: 5,
        output_per_1m: 5,
        billing: "member",
        lowest: { input_per_1m: 1, output_per_1m: 1 },
      },
    });
    expect(shown("auto").reasoning).toBeUndefined();
  });

  test("has a price of zero for service/free", () => {
    expect(shown("free").pricing).toMatchObject({
      prompt: "0",
      completion: "0",
      lowest: { input_per_1m: 0, output_per_1m: 0 },
    });
  });
});
