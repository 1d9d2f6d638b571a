import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { at, listAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";

const base = { base_url: "http://127.0.0.1:9/v1", dialect: "openai-chat" };

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        name: "Acme Inference",
        ...base,
        api_key: "k",
        data_policy: { zdr: true, data_collection: "deny" },
        models: [
          {
            id: "acme/large",
            display_name: "Acme Large",
            upstream_model: "large-v2",
            context_length: 131_072,
            max_completion_tokens: 16_384,
            quantization: "fp8",
            pricing: { prompt: "0.50", completion: "1.50", cache_read: "0.05" },
            capabilities: ["chat", "function-calling", "vision"],
            supported_parameters: ["tools", "temperature"],
            reasoning: { levels: ["low", "medium", "high"], default: "medium" },
          },
          { id: "acme/plain", pricing: { prompt: "1", completion: "2" } },
        ],
      }),
      provider({
        id: "second",
        ...base,
        api_key: "k",
        models: [
          {
            id: "acme/large",
            pricing: { prompt: "0.40", completion: "1.20" },
            max_completion_tokens: 8_192,
          },
        ],
      }),
      provider({
        id: "own-key",
        ...base,
        models: [
          { id: "own/only", pricing: { prompt: "3", completion: "15" } },
          { id: "own/unknown-rate" },
        ],
      }),
    ],
  });
});
afterAll(() => gateway.stop());

const model = async (path: string): Promise<unknown> =>
  (await gateway.get(`/models/${path}`)).json();

test("a model has every documented field", async () => {
  expect(await model("acme/large")).toMatchObject({
    id: "acme/large",
    object: "model",
    provider: "acme",
    providers: ["second", "acme"],
    category: "text",
    pricing: {
      prompt: "0.0000004",
      completion: "0.0000012",
      input_per_1m: 0.4,
      output_per_1m: 1.2,
    },
    links: { details: "/api/v1/models/acme/large", metrics: "/api/v1/models/acme/large/metrics" },
    top_provider: { max_completion_tokens: 8_192 },
  });
  const acme = listAt(await model("acme/large"), "per_upstream").find(
    (route) => at(route, "provider") === "acme",
  );
  expect(acme).toMatchObject({
    reasoning: { levels: ["low", "medium", "high"], default: "medium" },
    supported_parameters: ["tools", "temperature"],
    context: { max_completion_tokens: 16_384 },
    quantization: "fp8",
    data_policy: { zdr: true, data_collection: "deny" },
  });
  expect(at(acme, "billing")).toBeUndefined();
});

test("undeclared fields are left out, and an undeclared completion limit is null", async () => {
  const plain = await model("acme/plain");
  expect(at(plain, "reasoning")).toBeUndefined();
  expect(at(plain, "supported_parameters")).toEqual([]);
  expect(at(plain, "pricing.billing")).toBeUndefined();
  expect(at(plain, "top_provider.max_completion_tokens")).toBeNull();
});

test("a model for callers with their own key is marked byok, with the provider's price if known", async () => {
  expect(at(await model("own/only"), "pricing")).toEqual({
    prompt: "0",
    completion: "0",
    input_per_1m: 0,
    output_per_1m: 0,
    billing: "byok",
    list_pricing: { input_per_1m: 3, output_per_1m: 15 },
  });
  expect(at(await model("own/unknown-rate"), "pricing")).toEqual({
    prompt: "0",
    completion: "0",
    input_per_1m: 0,
    output_per_1m: 0,
    billing: "byok",
  });
  expect(at(await model("own/only"), "per_upstream.0.billing")).toBe("byok");
});

describe("a single model", () => {
  test.each(["acme/large", "acme%2Flarge", "ACME/Large", "acme%2flarge"])(
    "is found as %s",
    async (path) => {
      expect(at(await model(path), "id")).toBe("acme/large");
    },
  );

  test("is the same record as in the list", async () => {
    const listed = listAt(await (await gateway.get("/models")).json(), "data").find(
      (entry) => at(entry, "id") === "acme/large",
    );
    expect(listed).toEqual(await model("acme/large"));
    expect(await (await fetch(`${gateway.baseUrl}/models/acme/large`)).json()).toEqual(listed);
  });

  test.each(["acme/unknown", "acme%2Funknown", "acme", "unknown"])(
    "that does not exist, %s, returns 404",
    async (path) => {
      expect(await errorOf(await gateway.get(`/models/${path}`))).toMatchObject({
        status: 404,
        code: "not_found",
        type: "not_found_error",
      });
    },
  );
});

describe("providers", () => {
  test("the list is public and complete, and every logo can be fetched", async () => {
    const response = await fetch(`${gateway.baseUrl}/providers`);
    const body: unknown = await response.json();
    expect(at(body, "object")).toBe("list");
    const entries = listAt(body, "data");
    expect(entries.length).toBeGreaterThan(20);
    const acme = entries.find((entry) => at(entry, "id") === "acme");
    const logo = await fetch(gateway.origin + String(at(acme, "logo")));
    expect(acme).toMatchObject({ name: "Acme Inference", model_count: 2 });
    for (const entry of entries) {
      expect(entry).toMatchObject({
        id: expect.stringMatching(/^[a-z0-9][a-z0-9-]*$/),
        name: expect.any(String),
        description: expect.any(String),
        logo: expect.stringMatching(/^\/.*\.svg$/),
      });
      expect(String(at(entry, "description")).length).toBeWithin(1, 201);
    }
    expect([logo.status, logo.headers.get("content-type")]).toEqual([200, "image/svg+xml"]);
    expect(await logo.text()).toStartWith("<svg");
  });

  test("the list contains every provider that a model names", async () => {
    const known = new Set(
      listAt(await (await gateway.get("/providers")).json(), "data").map((entry) =>
        at(entry, "id"),
      ),
    );
    const named = listAt(await (await gateway.get("/models?all=1")).json(), "data").flatMap(
      (entry) => listAt(entry, "providers"),
    );
    expect(named.filter((id) => !known.has(id))).toEqual([]);
  });
});
