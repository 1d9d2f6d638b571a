import { describe, expect, test } from "bun:test";
import { leastMicroseconds } from "../../../test/support/least-microseconds.ts";
import { chargeFor } from "../../billing/ledger/price.ts";
import type { Environment } from "../providers/provider-definition.ts";
import { buildCatalog, type CatalogOptions } from "./build-catalog.ts";
import type { CatalogFacts, FactRow } from "./catalog-facts.ts";
import { configuredProviderSchema } from "./configured/configured-provider.ts";
import type { CatalogSnapshot, UpstreamRoute } from "./model.ts";

const nowMs = Date.UTC(2026, 10, 21);

const row = (provider: string, more: Partial<FactRow> = {}): FactRow => ({
  id: "acme/large",
  provider,
  upstream: "large",
  name: "Large",
  surface: "chat",
  context: 1000,
  max_output: 100,
  prices: { input: "0.0375", output: "0.15" },
  capabilities: ["chat"],
  parameters: ["max_tokens"],
  ...more,
});

const factsOf = (...rows: FactRow[]): CatalogFacts => ({
  source: "models.dev (MIT licence)",
  licence: "MIT",
  snapshot: "2026-07-02",
  units: "USD per million tokens",
  aliases: { "acme-ai/large": "acme/large", "acme/gone": "acme/not-there" },
  rows,
});

const build = (
  facts: CatalogFacts,
  providers: readonly unknown[] = [],
  environment: Environment = {},
): CatalogSnapshot =>
  buildCatalog({
    environment,
    configuredProviders: providers.map((entry) => configuredProviderSchema.parse(entry)),
    nowMs,
    facts,
  });

const routeOf = (catalog: CatalogSnapshot, modelId: string, providerId: string): UpstreamRoute => {
  const route = catalog.models
    .get(modelId)
    ?.routes.find(({ provider }) => provider.id === providerId);
  if (route === undefined) throw new Error(`${providerId} does not serve ${modelId}`);
  return route;
};

describe("a catalog built from the facts", () => {
  const catalog = build(
    factsOf(row("groq"), row("openrouter", { context: 2000, efforts: ["low", "high"] })),
    [],
    { GROQ_API_KEY: "gsk" },
  );

  test("shares each model and each provider between routes", () => {
    const model = catalog.models.get("acme/large");
    expect(model?.routes.map(({ provider }) => provider.id)).toEqual(["groq", "openrouter"]);
    expect(model?.routes[0]?.provider).toBe(catalog.providers.get("groq") as never);
    expect(catalog.version).toBe("models.dev 2026-07-02");
  });

  test("gives a provider a credential only if its variable is set", () => {
    expect(catalog.providers.get("groq")?.apiKey).toBe("gsk");
    expect(catalog.providers.get("openrouter")?.apiKey).toBeUndefined();
  });

  test("has exact prices, such as 37.5 nano-USD per token", () => {
    const { price } = routeOf(catalog, "acme/large", "groq");
    expect(price?.base).toEqual({ inputTokens: 37_500n, outputTokens: 150_000n });
    expect(price?.version).toBe("groq/acme/large@2026-07-02");
    if (price === undefined) throw new Error("no price");
    expect(chargeFor(price, { inputTokens: 2 })).toBe(75n);
    expect(chargeFor(price, { inputTokens: 1 })).toBe(38n);
    expect(chargeFor(price, { inputTokens: 1_000_000, outputTokens: 1_000_000 })).toBe(
      187_500_000n,
    );
  });

  test("keeps the effort levels of a route that differ from the model's", () => {
    const other = build(
      factsOf(row("groq", { efforts: ["low", "high"] }), row("openrouter", { efforts: ["low"] })),
    );
    expect(other.models.get("acme/large")?.reasoning).toEqual({ levels: ["low"] });
    expect(routeOf(other, "acme/large", "groq").reasoning).toEqual({ levels: ["low", "high"] });
    expect(routeOf(other, "acme/large", "openrouter").reasoning).toBeUndefined();
  });

  test("omits aliases without a model", () => {
    expect([...(catalog.aliases ?? [])]).toEqual([
      ["acme-ai/large", "acme/large"],
      ["large", "acme/large"],
    ]);
  });

  test("copies tiers and all price parts to the price row", () => {
    const prices = {
      input: "1",
      output: "2",
      cache_read: "0.1",
      cache_write: "1.25",
      cache_write_1h: "2",
      request: "5000",
    };
    const tiered = build(
      factsOf(
        row("groq", { prices, tiers: [{ above: 100, prices: { input: "2", output: "4" } }] }),
      ),
    );
    expect(routeOf(tiered, "acme/large", "groq").price).toEqual({
      version: "groq/acme/large@2026-07-02",
      base: {
        inputTokens: 1_000_000n,
        outputTokens: 2_000_000n,
        cacheReadTokens: 100_000n,
        cacheWriteTokens: 1_250_000n,
        cacheWriteOneHourTokens: 2_000_000n,
        request: 5_000_000_000n,
      },
      tiers: [
        { aboveInputTokens: 100, price: { inputTokens: 2_000_000n, outputTokens: 4_000_000n } },
      ],
    });
  });

  test("gives deviating models their own dialect", () => {
    const facts = factsOf(
      row("google-vertex", { id: "google/gemini-9", upstream: "gemini-9" }),
      row("google-vertex", { id: "z-ai/glm-9", upstream: "zai-org/glm-9-maas" }),
      row("openai", { id: "openai/gpt-9-pro", upstream: "gpt-9-pro" }),
    );
    const named = build(facts);
    expect(routeOf(named, "google/gemini-9", "google-vertex").dialect).toBeUndefined();
    expect(routeOf(named, "z-ai/glm-9", "google-vertex").dialect).toBe("openai-chat");
    expect(routeOf(named, "openai/gpt-9-pro", "openai").dialect).toBe("openai-responses");
  });
});

describe("signing keys", () => {
  const keys = { AWS_ACCESS_KEY_ID: "AK", AWS_SECRET_ACCESS_KEY: "s", AWS_REGION: "eu-west-1" };
  const bedrock = (entries: object[], environment: Record<string, string>) =>
    build(factsOf(), entries, environment).providers.get("amazon-bedrock");

  test("replace a bearer token, and an explicit token replaces them", () => {
    expect(bedrock([], keys)).toMatchObject({
      signing: { type: "aws-sigv4", accessKeyId: "AK", region: "eu-west-1" },
      dialectBaseUrls: { "anthropic-messages": "https://bedrock-runtime.eu-west-1.amazonaws.com" },
    });
    expect(bedrock([], { ...keys, AWS_BEARER_TOKEN_BEDROCK: "b" })).not.toHaveProperty("signing");
    expect(bedrock([{ id: "amazon-bedrock", api_key: "mine" }], keys)).not.toHaveProperty(
      "signing",
    );
  });

  test("keep a configured base URL for every dialect", () => {
    const moved = bedrock([{ id: "amazon-bedrock", base_url: "https://private.example" }], keys);
    expect(moved).toMatchObject({
      baseUrl: "https://private.example",
      signing: { type: "aws-sigv4" },
    });
    expect(moved).not.toHaveProperty("dialectBaseUrls");
  });
});

describe("local servers", () => {
  const model = { id: "qwen/qwen3-8b", upstream_model: "qwen3:8b" };

  test("are in the catalog only if their address is set", () => {
    expect(build(factsOf()).providers.has("ollama")).toBe(false);
    const catalog = build(factsOf(), [], { OLLAMA_BASE_URL: "http://127.0.0.1:11434/v1" });
    expect(catalog.providers.get("ollama")).toMatchObject({
      apiKey: "",
      local: true,
      baseUrl: "http://127.0.0.1:11434/v1",
    });
  });

  test("serve every caller free of charge, without a key", () => {
    const catalog = build(factsOf(), [
      { id: "ollama", base_url: "http://127.0.0.1:11434/v1", models: [model] },
    ]);
    const route = routeOf(catalog, model.id, "ollama");
    expect(route.provider.apiKey).toBe("");
    expect(route.upstreamModel).toBe("qwen3:8b");
    expect(route.price?.base).toEqual({ inputTokens: 0n, outputTokens: 0n });
  });
});

describe("configured providers", () => {
  const acme = { id: "acme", base_url: "http://127.0.0.1:9000/v1/", api_key: "secret" };
  const large = {
    id: "acme/large",
    upstream_model: "large-v2",
    pricing: { prompt: "0.50", completion: "1.50" },
  };

  test("are added with defaults", () => {
    const provider = build(factsOf(), [acme]).providers.get("acme");
    expect(provider).toEqual({
      id: "acme",
      name: "acme",
      baseUrl: "http://127.0.0.1:9000/v1",
      dialects: {
        chat: "openai-chat",
        embeddings: "openai-embeddings",
        moderations: "openai-moderations",
        images: "openai-images",
        transcriptions: "openai-audio",
        speech: "openai-audio",
        realtime: "openai-realtime",
      },
      credentialHeader: { name: "authorization", prefix: "Bearer " },
      apiKey: "secret",
      dataPolicy: {},
      timeouts: { connectMs: 5000, firstTokenMs: 60_000, idleMs: 60_000, totalMs: 600_000 },
      deviations: {},
    });
  });

  test.each<[string, object, Environment, string | undefined]>([
    ["a literal", { api_key: "secret" }, {}, "secret"],
    ["a variable", { api_key: "${ACME_API_KEY}" }, { ACME_API_KEY: "from there" }, "from there"],
    ["an unset variable (none)", { api_key: "${ACME_API_KEY}" }, {}, undefined],
    ["no setting (none)", { api_key: undefined }, { ACME_API_KEY: "unasked" }, undefined],
  ])("take their credential from %s", (_, key, environment, expected) => {
    expect(build(factsOf(), [{ ...acme, ...key }], environment).providers.get("acme")?.apiKey).toBe(
      expected as string,
    );
  });

  test("offer the surfaces of a dialect map; a single dialect of another vendor is for chat only", () => {
    const dialects = (dialect: unknown) =>
      build(factsOf(), [{ ...acme, dialect }]).providers.get("acme")?.dialects;
    expect(dialects({ rerank: "jina-rerank" })).toEqual({ rerank: "jina-rerank" });
    expect(dialects("anthropic-messages")).toEqual({ chat: "anthropic-messages" });
  });

  test("add a model with the values of its entry and defaults", () => {
    const model = build(factsOf(), [{ ...acme, models: [large] }]).models.get("acme/large");
    expect(model).toMatchObject({
      id: "acme/large",
      displayName: "large",
      owner: "acme",
      surface: "chat",
      category: "text",
      contextLength: 0,
      capabilities: ["chat"],
      addedAtMs: nowMs,
    });
    expect(model?.routes[0]).toMatchObject({ upstreamModel: "large-v2" });
  });

  test.each<[string, object, bigint | undefined]>([
    ["its configured price", { pricing: { prompt: "0.50", completion: 1.5 } }, 500_000n],
    ["no price by default", {}, undefined],
    ["zero if its id ends with :free", { id: "acme/large:free" }, 0n],
  ])("model price: %s", (_, given, expected) => {
    const { id = "acme/large" } = given as { id?: string };
    const catalog = build(factsOf(), [{ ...acme, models: [{ id, ...given }] }]);
    const { price } = routeOf(catalog, id, "acme");
    expect(price?.base.inputTokens).toBe(expected as bigint);
    if (price !== undefined)
      expect(price.version).toMatch(new RegExp(`^acme/${id}@configuration(-[0-9a-f]{8})?$`));
  });

  test("accept every part of a price", () => {
    const pricing = {
      prompt: "1",
      completion: "2",
      cache_read: "0.1",
      cache_write: "1.25",
      cache_write_1h: "2",
      reasoning: "3",
      image: "4",
      audio: "5",
      request: "0.005",
    };
    const catalog = build(factsOf(), [{ ...acme, models: [{ ...large, pricing }] }]);
    expect(routeOf(catalog, "acme/large", "acme").price?.base).toEqual({
      inputTokens: 1_000_000n,
      outputTokens: 2_000_000n,
      cacheReadTokens: 100_000n,
      cacheWriteTokens: 1_250_000n,
      cacheWriteOneHourTokens: 2_000_000n,
      reasoningTokens: 3_000_000n,
      inputImageTokens: 4_000_000n,
      inputAudioTokens: 5_000_000n,
      request: 5_000_000_000n,
    });
  });

  test("add the reasoning capability to a model with declared effort levels", () => {
    const capabilities = ["chat", "vision"];
    const reasoning = { levels: ["low", "high"] };
    const entries = [
      { id: "acme/large", capabilities, reasoning },
      { id: "acme/small", capabilities },
    ];
    const { models } = build(factsOf(), [{ ...acme, models: entries }]);
    expect(models.get("acme/large")?.capabilities).toEqual([...capabilities, "reasoning"]);
    expect(models.get("acme/large")?.routes[0]?.reasoningFeature).toBe(true);
    expect(models.get("acme/small")?.capabilities).toEqual(capabilities);
    expect(models.get("acme/small")?.routes[0]?.reasoningFeature).toBe(false);
  });

  test("add routes to a known model, and override its values", () => {
    const entry = {
      ...large,
      display_name: "Our Large",
      context_length: 4000,
      reasoning: { levels: ["low"], default: "low" },
    };
    const catalog = build(factsOf(row("groq"), row("together")), [{ ...acme, models: [entry] }]);
    const model = catalog.models.get("acme/large");
    expect(model?.routes.map(({ provider }) => provider.id)).toEqual(["acme", "groq", "together"]);
    expect(model).toMatchObject({
      displayName: "Our Large",
      contextLength: 4000,
      reasoning: { levels: ["low"], default: "low" },
      supportedParameters: ["max_tokens"],
    });
    expect(routeOf(catalog, "acme/large", "groq").contextLength).toBe(1000);
  });

  test("give a model every parameter that any of its routes declares, in any order", () => {
    const at = (id: string, more: object) => ({ ...acme, id, models: [{ ...large, ...more }] });
    const declared = (list: string[]) => ({ supported_parameters: list });
    const entries = [
      at("one", declared(["tools", "seed"])),
      at("two", {}),
      at("three", declared(["seed"])),
    ];
    for (const order of [entries, entries.toReversed()]) {
      const model = build(factsOf(), order).models.get("acme/large");
      expect([...(model?.supportedParameters ?? [])].sort()).toEqual(["seed", "tools"]);
      expect(
        model?.routes.find(({ provider }) => provider.id === "two")?.supportedParameters,
      ).toBeUndefined();
    }
  });

  test("with like have the deviations of the known provider and their own", () => {
    const own = (more: object) => build(factsOf(), [{ ...acme, ...more }]).providers.get("acme");
    expect(own({ like: "deepseek" })?.deviations).toMatchObject({
      maxTokensField: "max_tokens",
      reasoningReplay: "reasoning_content",
      reasoningBesideCalls: true,
    });
    expect(
      own({ like: "vllm", deviations: ["max_tokens", "replay_reasoning", "refuses_seed"] })
        ?.deviations,
    ).toEqual({
      maxTokensField: "max_tokens",
      ownCompletions: { form: "openai" },
      systemOnlyFirst: true,
      answersResults: "mistral",
      reasoningReplay: "reasoning",
      unsupportedFields: ["seed"],
    });
    expect(
      own({ like: "groq", deviations: ["refuses_seed"] })?.deviations.unsupportedFields,
    ).toEqual(["logprobs", "top_logprobs", "logit_bias", "top_k", "min_p", "top_a", "seed"]);
    expect(own({ like: "anthropic" })).toMatchObject({
      dialects: { chat: "anthropic-messages" },
      credentialHeader: { name: "x-api-key", prefix: "" },
    });
    expect(own({ like: "anthropic", dialect: "openai-chat" })?.dialects.chat).toBe("openai-chat");
  });

  test("with the id of a built-in provider can be like another provider", () => {
    const { providers } = build(factsOf(), [
      { id: "openai", base_url: "http://127.0.0.1:9000/v1", like: "vllm" },
    ]);
    expect(providers.get("openai")?.deviations).toEqual({
      maxTokensField: "either",
      ownCompletions: { form: "openai" },
      systemOnlyFirst: true,
      answersResults: "mistral",
    });
  });

  test("with the id of a built-in provider override only the given values", () => {
    const catalog = build(
      factsOf(row("groq")),
      [
        {
          id: "groq",
          name: "Our Groq",
          timeouts_ms: { idle: 1000 },
          data_policy: { zdr: true },
          headers: { "x-team": "a" },
        },
      ],
      { GROQ_API_KEY: "gsk" },
    );
    expect(catalog.providers.get("groq")).toMatchObject({
      name: "Our Groq",
      baseUrl: "https://api.groq.com/openai/v1",
      apiKey: "gsk",
      headers: { "x-team": "a" },
      dataPolicy: { zdr: true },
      timeouts: { connectMs: 5000, idleMs: 1000 },
    });
    expect(routeOf(catalog, "acme/large", "groq").provider.name).toBe("Our Groq");
  });

  test("override only the given values of a model of a built-in provider", () => {
    const catalog = build(factsOf(row("groq")), [
      { id: "groq", models: [{ id: "acme/large", max_completion_tokens: 50 }] },
    ]);
    const route = routeOf(catalog, "acme/large", "groq");
    expect(catalog.models.get("acme/large")?.routes).toHaveLength(1);
    expect(route).toMatchObject({
      upstreamModel: "large",
      maxCompletionTokens: 50,
      contextLength: 1000,
    });
    expect(route.price?.version).toBe("groq/acme/large@2026-07-02");
  });

  test("mark the simulated provider", () => {
    const simulatedProvider = configuredProviderSchema.parse({
      ...acme,
      id: "sandbox",
      models: [{ id: "sandbox/chat:free" }],
    });
    const options: CatalogOptions = {
      environment: {},
      configuredProviders: [],
      simulatedProvider,
      nowMs,
      facts: factsOf(),
    };
    expect(routeOf(buildCatalog(options), "sandbox/chat:free", "sandbox").provider.simulated).toBe(
      true,
    );
  });
});

test("only listed models are offered where the configuration says so, with the facts' prices", () => {
  const providers = [
    configuredProviderSchema.parse({ id: "openai", models: [{ id: "openai/gpt-4o" }] }),
    configuredProviderSchema.parse({ id: "groq" }),
  ];
  const options = { environment: {}, configuredProviders: providers, nowMs };
  const all = buildCatalog(options);
  const listed = buildCatalog({ ...options, onlyListed: true });
  const ids = [...listed.models.values()].flatMap(({ id, router }) => (router ? [] : [id]));
  expect(ids).toEqual(["openai/gpt-4o"]);
  const routes = listed.models.get("openai/gpt-4o")?.routes ?? [];
  expect(routes.map(({ provider }) => provider.id)).toEqual(["openai"]);
  expect(routes[0]?.price).toEqual(routeOf(all, "openai/gpt-4o", "openai").price);
  expect(all.models.get("openai/gpt-4o")?.routes.length).toBeGreaterThan(1);
});

test("the bundled facts make a catalog within a start's budget", () => {
  let starts = 0;
  // Another credential each time, so that none takes the models of the one before over.
  const build = (): CatalogSnapshot =>
    buildCatalog({
      environment: { OPENAI_API_KEY: `sk-${(starts += 1)}` },
      configuredProviders: [],
      nowMs,
    });
  const { size } = build().models;
  const tookMs = leastMicroseconds(build, { calls: 1, batches: 10 }) / 1000;
  console.log(`catalog of ${size} models built in ${tookMs.toFixed(1)} ms`);
  expect(size).toBeGreaterThan(500);
  // 15 ms on a quiet machine.
  expect(tookMs).toBeLessThan(300);
});

test("a catalog of the bundled facts takes the models of the last one over, unless a built-in provider differs", () => {
  const bundled = (providers: readonly unknown[], environment: Environment = {}): CatalogSnapshot =>
    buildCatalog({
      environment,
      configuredProviders: providers.map((entry) => configuredProviderSchema.parse(entry)),
      nowMs,
    });
  const own = {
    id: "own",
    base_url: "http://127.0.0.1:1/v1",
    dialect: "openai-chat",
    models: [{ id: "own/large" }, { id: "openai/gpt-4o" }],
  };
  const modelOf = (catalog: CatalogSnapshot, id: string) => {
    const model = catalog.models.get(id);
    if (model === undefined) throw new Error(`there is no ${id}`);
    return model;
  };
  const first = bundled([]);
  const second = bundled([own]);
  const id = "openai/gpt-4o-mini";
  expect(modelOf(second, id)).toBe(modelOf(first, id));
  for (const { provider } of modelOf(second, id).routes)
    expect(second.providers.get(provider.id)).toBe(provider);
  expect(modelOf(second, "openai/gpt-4o").routes[0]?.provider.id).toBe("own");
  const third = bundled([], { OPENAI_API_KEY: "sk-third" });
  expect(routeOf(third, id, "openai").provider.apiKey).toBe("sk-third");
  expect(routeOf(second, id, "openai").provider.apiKey).toBeUndefined();
  expect(third.models.has("own/large")).toBe(false);
  expect(modelOf(third, "openai/gpt-4o").routes).toEqual(
    expect.not.arrayContaining([
      expect.objectContaining({ provider: expect.objectContaining({ id: "own" }) }),
    ]),
  );
  expect(bundled([]).models).toEqual(first.models);
});

test("a provider whose key is in a file is made anew, since the file may have another key", () => {
  const build = (): CatalogSnapshot =>
    buildCatalog({
      environment: { GOOGLE_APPLICATION_CREDENTIALS: "key.json", GOOGLE_VERTEX_PROJECT: "p" },
      configuredProviders: [],
      nowMs,
    });
  const before = build().providers.get("google-vertex");
  const after = build().providers.get("google-vertex");
  expect(before?.signing).toEqual({ type: "google-service-account", key: { file: "key.json" } });
  expect(after).toEqual(before);
  expect(after).not.toBe(before);
});
