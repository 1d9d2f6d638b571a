import { describe, expect, test } from "bun:test";
import type { PriceRow } from "../../billing/ledger/price.ts";
import { usdPerTokenText, modelObject } from "./model-object.ts";
import type { CatalogModel, Provider, UpstreamRoute } from "./model.ts";
import { providerEntry, providerLogoSvg } from "./list-models.ts";

const provider = (id: string, more: Partial<Provider> = {}): Provider => ({
  id,
  name: id,
  baseUrl: `https://${id}.example`,
  dialects: { chat: "openai-chat" },
  credentialHeader: { name: "authorization", prefix: "Bearer " },
  dataPolicy: {},
  timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1, totalMs: 1 },
  deviations: {},
  ...more,
});

const price = (inputTokens: bigint, outputTokens: bigint): PriceRow => ({
  version: "v",
  base: { inputTokens, outputTokens },
});

const route = (id: string, more: Partial<UpstreamRoute> = {}): UpstreamRoute => ({
  provider: provider(id),
  upstreamModel: "secret-wire-name",
  ...more,
});

const model = (routes: UpstreamRoute[], more: Partial<CatalogModel> = {}): CatalogModel => ({
  id: "acme/large",
  displayName: "Large",
  owner: "acme",
  surface: "chat",
  category: "text",
  contextLength: 1000,
  capabilities: ["chat"],
  addedAtMs: 1_700_000_000_000,
  routes,
  ...more,
});

const everything = { reachable: () => true };
const nothing = { reachable: () => false };

test("a model object has the documented fields", () => {
  const reasoning = { levels: ["low", "high"], default: "low" };
  const routes = [
    route("one", {
      price: price(3_000_000n, 15_000_000n),
      contextLength: 1000,
      maxCompletionTokens: 500,
      quantization: "fp8",
      supportedParameters: ["tools"],
      reasoning: { levels: ["low"] },
      reasoningFeature: true,
      provider: provider("one", { dataPolicy: { zdr: true, dataCollection: "deny" } }),
    }),
    route("two", { maxCompletionTokens: 200 }),
  ];
  const object = modelObject(model(routes, { reasoning, supportedParameters: ["tools"] }), {
    reachable: ({ provider: { id } }) => id === "one",
  });
  expect(object).toEqual({
    id: "acme/large",
    object: "model",
    display_name: "Large",
    name: "Large",
    canonical_slug: "acme/large",
    provider: "acme",
    owned_by: "acme",
    providers: ["one", "two"],
    category: "text",
    context_length: 1000,
    pricing: { prompt: "0.000003", completion: "0.000015", input_per_1m: 3, output_per_1m: 15 },
    capabilities: ["chat"],
    links: { details: "/api/v1/models/acme/large", metrics: "/api/v1/models/acme/large/metrics" },
    reasoning: {
      ...reasoning,
      supported_efforts: ["low", "high"],
      default_effort: "low",
      mandatory: true,
    },
    supported_parameters: ["tools"],
    architecture: {
      modality: "text->text",
      input_modalities: ["text"],
      output_modalities: ["text"],
      instruct_type: null,
    },
    default_parameters: null,
    per_request_limits: null,
    supported_voices: null,
    top_provider: { context_length: 1000, max_completion_tokens: 500, is_moderated: false },
    created: 1_700_000_000,
    per_upstream: [
      {
        provider: "one",
        reasoning: { levels: ["low"] },
        features: { reasoning: true },
        supported_parameters: ["tools"],
        context: { context_length: 1000, max_completion_tokens: 500 },
        pricing: { input_per_1m: 3, output_per_1m: 15 },
        quantization: "fp8",
        data_policy: { zdr: true, data_collection: "deny" },
      },
      {
        provider: "two",
        features: {},
        context: { max_completion_tokens: 200 },
        data_policy: {},
        billing: "byok",
      },
    ],
  });
  expect(JSON.stringify(object)).not.toContain("secret-wire-name");
});

test.each([
  ["every route", everything, 200],
  [
    "one route",
    { reachable: ({ maxCompletionTokens }: UpstreamRoute) => maxCompletionTokens === 500 },
    500,
  ],
  ["no usable route, all routes", nothing, 200],
])("max_completion_tokens is the lowest of the usable routes: with %s", (_, view, expected) => {
  const routes = [
    route("one", { maxCompletionTokens: 500 }),
    route("two", { maxCompletionTokens: 200 }),
    route("three"),
  ];
  expect(modelObject(model(routes), view).top_provider.max_completion_tokens).toBe(expected);
});

test("an announced model has coming_soon and its announced price, without a usable route", () => {
  const routes = [route("one", { price: price(3_000_000n, 15_000_000n) })];
  const object = modelObject(model(routes, { comingSoon: true }), nothing);
  expect(object).toMatchObject({
    coming_soon: true,
    pricing: { input_per_1m: 3, output_per_1m: 15 },
  });
  expect(object.pricing).not.toHaveProperty("billing");
});

test("undeclared optional fields are omitted, and required ones have defaults", () => {
  const object = modelObject(model([route("one")], { addedAtMs: 0 }), everything);
  expect(object).not.toContainAnyKeys(["reasoning", "description", "coming_soon"]);
  // OpenRouter's typed client refuses a model without it.
  expect(object.supported_parameters).toEqual([]);
  // OpenAI's typed clients refuse a model without it.
  expect(object.created).toBe(0);
  expect(object.top_provider.max_completion_tokens).toBeNull();
});

test("the modality follows from the capabilities and the surface", () => {
  const modality = (more: Partial<CatalogModel>) =>
    modelObject(model([route("one")], more), everything).architecture.modality;
  expect(modality({ capabilities: ["chat", "vision", "document-input", "audio-input"] })).toBe(
    "text+image+file+audio->text",
  );
  expect(modality({ surface: "embeddings", capabilities: ["embeddings"] })).toBe(
    "text->embeddings",
  );
  expect(modality({ capabilities: ["chat", "image-generation", "audio-output"] })).toBe(
    "text->text+image+audio",
  );
  expect(modality({ surface: "moderations", capabilities: [] })).toBe("text->text");
});

test.each([
  ["an effort level disables it", ["none", "low"], "openai-chat", false],
  ["the dialect is Messages", ["low", "high"], "anthropic-messages", false],
  ["nothing disables it", ["low", "high"], "openai-chat", true],
] as const)("reasoning.mandatory if %s", (_, levels, dialect, mandatory) => {
  const served = model([route("one", { dialect })], { reasoning: { levels } });
  expect(modelObject(served, everything).reasoning).toEqual({
    levels,
    supported_efforts: levels,
    default_effort: null,
    mandatory,
  });
});

describe("the pricing of a model", () => {
  const cheap = route("cheap", { price: price(37_500n, 150_000n) });
  const dear = route("dear", { price: price(1_000_000n, 1_000_000n) });

  test("is the price of the cheapest usable route", () => {
    expect(modelObject(model([dear, cheap]), everything).pricing).toEqual({
      prompt: "0.0000000375",
      completion: "0.00000015",
      input_per_1m: 0.0375,
      output_per_1m: 0.15,
    });
    expect(
      modelObject(model([dear, cheap]), { reachable: (candidate) => candidate === dear }).pricing
        .input_per_1m,
    ).toBe(1);
  });

  test("is zero with billing byok and the list price, if only BYOK routes exist", () => {
    expect(modelObject(model([dear, cheap]), nothing).pricing).toEqual({
      prompt: "0",
      completion: "0",
      input_per_1m: 0,
      output_per_1m: 0,
      billing: "byok",
      list_pricing: { input_per_1m: 0.0375, output_per_1m: 0.15 },
    });
    expect(modelObject(model([route("one")]), nothing).pricing).not.toHaveProperty("list_pricing");
  });

  test("is zero without billing byok for a free model", () => {
    const free = modelObject(model([route("one", { price: price(0n, 0n) })]), everything).pricing;
    expect(free).toEqual({ prompt: "0", completion: "0", input_per_1m: 0, output_per_1m: 0 });
  });

  test.each([
    [0n, "0"],
    [1n, "0.000000000001"],
    [37_500n, "0.0000000375"],
    [2_500_000n, "0.0000025"],
    [3_000_000_000_000n, "3"],
    [1_500_000_000_000n, "1.5"],
  ])("%p pico-USD per token is %s USD", (pico, text) => {
    expect(usdPerTokenText(pico)).toBe(text);
  });
});

describe("a provider entry", () => {
  test("has the documented fields", () => {
    const acme = provider("acme", {
      name: "Acme",
      description: "d".repeat(300),
      website: "https://acme.example",
    });
    expect(providerEntry({ ...acme, apiKey: "key" }, 3).status).toBe("active");
    expect(providerEntry(acme, 3)).toEqual({
      status: "byok",
      id: "acme",
      name: "Acme",
      description: "d".repeat(200),
      logo: "/logos/acme.svg",
      slug: "acme",
      privacy_policy_url: null,
      terms_of_service_url: null,
      status_page_url: null,
      website: "https://acme.example",
      model_count: 3,
      endpoints: ["chat"],
    });
  });

  test("has a logo with escaped text", () => {
    const svg = providerLogoSvg({ id: "acme", name: 'A"><script>' });
    expect(svg).not.toContain("<script>");
    expect(svg).toContain('aria-label="A&quot;&gt;&lt;script&gt;"');
    expect(providerLogoSvg({ id: "acme", name: "Together AI" })).toContain(">TA<");
  });
});
