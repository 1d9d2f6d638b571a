import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  acme,
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

const priced = (id: string, price: string, more: Record<string, unknown> = {}) => ({
  id,
  pricing: { prompt: price, completion: price },
  context_length: 100_000,
  capabilities: ["chat", "function-calling"],
  ...more,
});

let upstream: FaultUpstream;
let gateway: TestGateway;
const clock = middayClock();
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway(
    {
      providers: [
        acme(upstream.baseUrl, {
          data_policy: { zdr: true, data_collection: "deny" },
          models: [
            priced("acme/large", "1", { upstream_model: "large-v2" }),
            priced("acme/small", "4"),
            priced("acme/metrics", "4"),
            priced("acme/next", "1", { coming_soon: true }),
            priced("acme/zoo", "1"),
          ],
        }),
        provider({
          id: "backup",
          base_url: upstream.baseUrl,
          dialect: "openai-chat",
          api_key: "k",
          models: [priced("acme/large", "2", { data_policy: { distillable_text: true } })],
        }),
        provider({
          id: "own-key",
          base_url: upstream.baseUrl,
          dialect: "openai-chat",
          models: [priced("acme/large", "3")],
        }),
      ],
      routers: {
        "service/auto": { members: ["acme/small", "acme/large"], quality: ["acme/large"] },
      },
    },
    { random: () => 0, clock },
  );
  // The first is refused by acme and served by backup, the second is served by acme; backup then
  // has a failure of its own.
  upstream.enqueue(json({ error: { message: "broken" } }, { status: 500 }));
  const first = await gateway.post("/chat/completions", chatRequest());
  const second = await gateway.post("/chat/completions", chatRequest({ stream: true }));
  const elsewhere = await gateway.post("/chat/completions", chatRequest({ model: "acme/zoo" }));
  await Promise.all([first.text(), second.text(), elsewhere.text()]);
  // Neither a refused credential nor a refused request says that acme was away.
  for (const status of [401, 400]) {
    upstream.enqueue(json({ error: { message: "no" } }, { status }));
    await (
      await gateway.post("/chat/completions", chatRequest({ provider: { only: ["acme"] } }))
    ).text();
  }
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const anonymously = (path: string): Promise<Response> => fetch(gateway.baseUrl + path);
const told = async (path: string): Promise<unknown> => (await gateway.get(path)).json();
const fieldOf = (body: unknown, field: string): unknown[] =>
  listAt(body, "data").map((entry) => at(entry, field));

const names = ["routing-preview", "metrics", "privacy", "uptime", "prices"] as const;

describe.each(names)("the sub-route %s", (name) => {
  const spellings = [
    "acme/large",
    "acme%2Flarge",
    "ACME/Large",
    "acme/large:nitro",
    "acme%2flarge:floor",
  ];
  test.each(spellings)("finds the model as %s", async (slug) => {
    const body = await told(`/models/${slug}/${name}`);
    expect(body).toMatchObject({ object: `model.${name.replace("-", "_")}`, model: "acme/large" });
    expect(listAt(body, "data").length).toBeGreaterThan(1);
  });

  test("exists under both base URLs", async () => {
    const response = await fetch(`${gateway.origin}/v1/models/service/auto/${name}`);
    expect([response.status, at(await response.json(), "model")]).toEqual([200, "service/auto"]);
  });

  test("is empty for a preset without members", async () => {
    expect(await told(`/models/service/hermes/${name}`)).toMatchObject({
      model: "service/hermes",
      data: [],
    });
  });

  test.each(["acme/unknown", "acme%2Funknown", "acme/large:free"])(
    "returns 404 for %s",
    async (slug) => {
      expect(await errorOf(await gateway.get(`/models/${slug}/${name}`))).toMatchObject({
        status: 404,
        code: "not_found",
      });
    },
  );
});

test("a model named like a sub-route can be read and has its own sub-routes", async () => {
  expect(await told("/models/acme/metrics")).toMatchObject({ object: "model", id: "acme/metrics" });
  expect(await told("/models/acme/metrics/metrics")).toMatchObject({
    object: "model.metrics",
    model: "acme/metrics",
  });
  expect(await errorOf(await gateway.get("/models/acme/uptime"))).toMatchObject({
    status: 404,
    code: "not_found",
  });
});

test("a model is found with a suffix, and contradictory suffixes return 400", async () => {
  expect(at(await told("/models/acme/large:nitro"), "id")).toBe("acme/large");
  expect(at(await told("/models/service%2Fauto%5B500k%5D:exacto"), "id")).toBe("service/auto");
  expect(await errorOf(await gateway.get("/models/acme/large:nitro:floor"))).toMatchObject({
    status: 400,
    param: "model",
  });
});

test("Anthropic's clients read a single model in the same form as in the list", async () => {
  const model: unknown = await (
    await gateway.get("/models/acme/large", { "anthropic-version": "2023-06-01" })
  ).json();
  expect(model).toMatchObject({ type: "model", id: "acme/large", display_name: "large" });
});

describe("routing-preview", () => {
  test("lists the routes in the order they are tried, without routes for the caller's own keys only", async () => {
    const body = await told("/models/acme/large/routing-preview");
    expect(fieldOf(body, "position")).toEqual([0, 1]);
    expect(fieldOf(body, "provider")).toEqual(["acme", "backup"]);
    expect(at(body, "data.0")).toMatchObject({
      model: "acme/large",
      upstream_model: "large-v2",
      reason: "weighted by price",
      price: { input_per_1m: 1, output_per_1m: 1 },
      health: { status: "degraded", requests: 2, error_rate: 0.5 },
    });
    expect(at(body, "data.1.health")).toEqual({ status: "healthy", requests: 1, error_rate: 0 });
  });

  test("is the same on every request", async () => {
    const [first, ...others] = await Promise.all(
      Array.from({ length: 5 }, () => told("/models/acme/large/routing-preview")),
    );
    for (const other of others) expect(other).toEqual(first);
  });

  test("of a preset is public and lists each member once", async () => {
    const body: unknown = await (await anonymously("/models/service/auto/routing-preview")).json();
    expect(fieldOf(body, "model")).toEqual(["acme/large", "acme/small"]);
    expect(textAt(body, "data.0.reason")).toStartWith("quality member; ");
    expect(at(body, "data.1.health")).toEqual({
      status: "no_signal",
      requests: 0,
      error_rate: null,
    });
  });

  test("of other models needs an LLM key", async () => {
    expect(await errorOf(await anonymously("/models/acme/large/routing-preview"))).toMatchObject({
      status: 401,
      code: "missing_api_key",
    });
    const managed = await gateway.get("/models/acme/large/routing-preview", {
      authorization: `Bearer ${testManagementKey}`,
    });
    expect(await errorOf(managed)).toMatchObject({ status: 401, code: "unauthorized" });
  });

  test("contains only models that the key may use", async () => {
    const created = await gateway.post(
      "/keys",
      { name: "narrow", allowed_models: ["acme/small"] },
      {
        headers: { authorization: `Bearer ${testManagementKey}` },
      },
    );
    const headers = { authorization: `Bearer ${textAt(await created.json(), "key")}` };
    const chain = async (id: string): Promise<unknown[]> =>
      fieldOf(await (await gateway.get(`/models/${id}/routing-preview`, headers)).json(), "model");
    expect(await chain("service/auto")).toEqual(["acme/small"]);
    expect(await chain("acme/large")).toEqual([]);
  });

  test("of an announced model is empty", async () => {
    expect(fieldOf(await told("/models/acme/next/routing-preview"), "provider")).toEqual([]);
  });
});

describe("metrics", () => {
  test("has latency and throughput percentiles per provider, and null without a measurement", async () => {
    const body: unknown = await (await anonymously("/models/acme/large/metrics")).json();
    expect([at(body, "window_seconds"), fieldOf(body, "provider").sort()]).toEqual([
      300,
      ["acme", "backup", "own-key"],
    ]);
    const of = (id: string) => listAt(body, "data").find((entry) => at(entry, "provider") === id);
    expect(of("acme")).toMatchObject({ requests: 2, error_rate: 0.5 });
    for (const measure of ["latency_ms", "throughput_tps"]) {
      expect(Object.keys(Object(at(of("acme"), measure)))).toEqual([
        "p50",
        "p75",
        "p90",
        "p95",
        "p99",
      ]);
      expect(numberAt(of("acme"), `${measure}.p50`)).toBeGreaterThan(0);
    }
    // Whole answers show no first token.
    expect(of("backup")).toMatchObject({
      requests: 1,
      error_rate: 0,
      latency_ms: null,
      throughput_tps: null,
    });
    expect(of("own-key")).toMatchObject({ requests: 0, error_rate: null, latency_ms: null });
  });

  test("of a preset has the routes of its members", async () => {
    const body = await told("/models/service/auto/metrics");
    expect(
      listAt(body, "data")
        .map((entry) => `${textAt(entry, "model")} ${textAt(entry, "provider")}`)
        .sort(),
    ).toEqual(["acme/large acme", "acme/large backup", "acme/large own-key", "acme/small acme"]);
  });
});

test("privacy has each provider's policy with the model's overrides, and null if unknown", async () => {
  const entries = listAt(await (await anonymously("/models/acme/large/privacy")).json(), "data");
  const of = (id: string) => entries.find((entry) => at(entry, "provider") === id);
  expect(of("acme")).toEqual({
    provider: "acme",
    model: "acme/large",
    name: "Acme Inference",
    zdr: true,
    data_collection: "deny",
    distillable_text: null,
  });
  expect(of("backup")).toMatchObject({ zdr: null, data_collection: null, distillable_text: true });
});

describe("uptime", () => {
  const today = new Date(clock.nowMs()).toISOString().slice(0, 10);

  test("has 90 days per provider and counts only failures that are the provider's fault", async () => {
    const body: unknown = await (await anonymously("/models/acme/large/uptime")).json();
    expect(at(body, "days")).toBe(90);
    const entries = listAt(body, "data");
    expect(entries.map((entry) => listAt(entry, "buckets").length)).toEqual([90, 90, 90]);
    const of = (id: string) => entries.find((entry) => at(entry, "provider") === id);
    expect(listAt(of("acme"), "buckets").at(-1)).toMatchObject({ date: today, failures: 1 });
    expect(of("backup")).toMatchObject({ uptime: 1 });
    expect(listAt(of("backup"), "buckets").at(-1)).toEqual({
      date: today,
      attempts: 1,
      failures: 0,
      uptime: 1,
    });
    expect(listAt(of("own-key"), "buckets").at(0)).toMatchObject({
      attempts: 0,
      failures: 0,
      uptime: null,
    });
    expect(at(of("own-key"), "uptime")).toBeNull();
  });

  test("of a preset combines its members", async () => {
    const body = await told("/models/service/auto/uptime");
    expect(fieldOf(body, "provider").sort()).toEqual(["acme", "backup", "own-key"]);
  });
});

test("sort=usage puts the model with the most requests of the last seven days first", async () => {
  const listed = fieldOf(await told("/models?sort=usage&provider=acme"), "id");
  expect(listed).toEqual(["acme/large", "acme/zoo", "acme/metrics", "acme/next", "acme/small"]);
});

test("the OpenAPI document describes the response of every sub-route", async () => {
  const document = await told("/openapi.json");
  for (const name of names) {
    const operation = Object(at(document, "paths"))[`/models/{owner}/{model}/${name}`] as unknown;
    expect(
      at(operation, "get.responses.200.content.application/json.schema.properties.data.type"),
    ).toBe("array");
  }
});
