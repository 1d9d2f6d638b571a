import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";

const pricing = { prompt: "0.50", completion: "1.50" };
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
        models: [
          { id: "acme/zebra", pricing, context_length: 8_000, capabilities: ["chat"] },
          {
            id: "acme/alpha",
            pricing,
            context_length: 128_000,
            capabilities: ["chat", "vision", "function-calling"],
          },
          { id: "other/model", pricing, context_length: 32_000, capabilities: ["chat", "vision"] },
          { id: "acme/unpriced" },
          { id: "acme/next", pricing, context_length: 4_000, coming_soon: true },
        ],
      }),
      provider({
        id: "own-key",
        name: "Own Key",
        ...base,
        models: [
          { id: "own/only", pricing, context_length: 64_000, capabilities: ["chat"] },
          { id: "own/vectors", pricing, surface: "embeddings", context_length: 512 },
        ],
      }),
    ],
  });
});
afterAll(() => gateway.stop());

const body = async (query: string, headers?: Record<string, string>): Promise<unknown> =>
  (
    await (headers === undefined
      ? gateway.get(`/models${query}`)
      : fetch(`${gateway.baseUrl}/models${query}`, { headers }))
  ).json();
/**
 * Ids without those of the routing presets, which have a test of their own in
 * routing-presets.test.ts.
 */
const ids = async (query: string, headers?: Record<string, string>): Promise<string[]> =>
  listAt(await body(query, headers), "data")
    .map((model) => textAt(model, "id"))
    .filter((id) => !id.startsWith("service/"));

/** What the gateway serves, and what is announced. */
const served = ["acme/alpha", "acme/next", "acme/zebra", "other/model"];
const anonymous = {};

test("GET /models lists the models that the caller can reach", async () => {
  expect(at(await body(""), "object")).toBe("list");
  expect((await ids("")).sort()).toEqual(served);
  expect((await ids("", anonymous)).sort()).toEqual(served);
});

describe("an unreachable model", () => {
  test.each(["all=1", "all=true", "all=yes", "all=YES", "include=unavailable", "include=all"])(
    "is listed with %s",
    async (query) => {
      const all = await ids(`?${query}`);
      expect(all).toContain("own/only");
      expect(all).toContain("acme/unpriced");
      expect(all.length).toBeGreaterThan(100);
    },
  );

  test.each(["", "?all=0", "?all=no", "?all=", "?include=nothing"])(
    "is not listed with %p",
    async (query) => {
      expect(await ids(query)).not.toContain("own/only");
    },
  );

  test("an anonymous caller never sees models that only serve callers with their own key", async () => {
    const models = listAt(await body("?all=1", anonymous), "data");
    expect(
      models.filter(
        (model) => at(model, "pricing.billing") === "byok" && at(model, "coming_soon") !== true,
      ),
    ).toEqual([]);
    expect(models.map((model) => at(model, "id"))).toContain("acme/alpha");
    expect(models.map((model) => at(model, "id"))).not.toContain("own/only");
  });
});

describe("filters", () => {
  test.each([
    ["?provider=acme", served],
    ["?provider=ACME", served],
    ["?provider=other", ["other/model"]],
    ["?provider=Acme%20Inference", served],
    ["?provider=nobody", []],
    ["?category=text", served],
    ["?category=TEXT", served],
    ["?category=embedding&all=1&provider=own-key", ["own/vectors"]],
    ["?provider=own-key", []],
    ["?provider=own-key&all=1", ["own/only", "own/vectors"]],
    ["?category=audio", []],
    ["?min_context=32000", ["acme/alpha", "other/model"]],
    ["?min_context=200000", []],
    ["?capability=vision", ["acme/alpha", "other/model"]],
    ["?capability=vision&capability=function_calling", ["acme/alpha"]],
    ["?capability=function-calling", ["acme/alpha"]],
    ["?supported=vision,function_calling", ["acme/alpha"]],
    ["?supported=vision", ["acme/alpha", "other/model"]],
    ["?capability=Function-Calling&supported=vision", ["acme/alpha"]],
    ["?capability=telepathy", []],
    ["?privacy=0", served],
    ["?privacy=false", served],
    ["?provider=acme&capability=vision&min_context=100000", ["acme/alpha"]],
  ])("%s", async (query, expected) => {
    expect((await ids(query)).sort()).toEqual([...expected]);
  });

  test.each([
    ["?min_context=much", "min_context"],
    ["?min_context=-1", "min_context"],
    ["?min_context=1.5", "min_context"],
    ["?sort=best", "sort"],
    ["?category=smell", "category"],
  ])("%s returns 400 that names the parameter", async (query, param) => {
    expect(await errorOf(await gateway.get(`/models${query}`))).toMatchObject({
      status: 400,
      code: "bad_request",
      param,
    });
  });
});

describe("orders", () => {
  test.each(["name", "id"])("sort=%s sorts by id", async (sort) => {
    expect(await ids(`?sort=${sort}`)).toEqual(served);
  });

  test.each(["added", "newest", "new", "created"])(
    "sort=%s puts the newest first",
    async (sort) => {
      const created = listAt(await body(`?all=1&sort=${sort}`), "data").map(
        (model) => at(model, "created") ?? 0,
      ) as number[];
      expect(created).toEqual([...created].sort((left, right) => right - left));
    },
  );

  test.each(["usage", "top", "top-usage", "popular"])("sort=%s is accepted", async (sort) => {
    expect((await ids(`?sort=${sort}`)).sort()).toEqual(served);
  });
});

describe("presets", () => {
  test("are listed for authenticated callers only", async () => {
    expect(at(await body(""), "presets")).toEqual([]);
    expect(at(await body("", { authorization: `Bearer ${testManagementKey}` }), "presets")).toEqual(
      [],
    );
    expect(Object.keys(Object(await body("", anonymous)))).toEqual([
      "object",
      "data",
      "total_count",
      "links",
    ]);
  });

  test("are left out with presets=0", async () => {
    for (const off of ["0", "false"])
      expect(Object.keys(Object(await body(`?presets=${off}`)))).not.toContain("presets");
  });
});

describe("an announced model", () => {
  test("is listed for everyone, with a marker and its price", async () => {
    for (const headers of [undefined, anonymous]) {
      const next = listAt(await body("", headers), "data").find(
        (model) => at(model, "id") === "acme/next",
      );
      expect(next).toMatchObject({
        coming_soon: true,
        pricing: { input_per_1m: 0.5, output_per_1m: 1.5 },
      });
    }
  });

  test("returns 404 when it is called", async () => {
    const answer = await gateway.post("/chat/completions", {
      model: "acme/next",
      messages: [{ role: "user", content: "?" }],
    });
    expect(await errorOf(answer)).toMatchObject({
      status: 404,
      code: "model_unavailable",
      param: "model",
    });
  });
});

test("a key that may use a member of a routing preset sees the preset", async () => {
  const create = (allowed: string) =>
    gateway.post(
      "/keys",
      { name: "narrow", allowed_models: [allowed] },
      { headers: { authorization: `Bearer ${testManagementKey}` } },
    );
  const seenWith = async (allowed: string): Promise<boolean> => {
    const headers = {
      authorization: `Bearer ${textAt(await (await create(allowed)).json(), "key")}`,
    };
    return listAt(await body("", headers), "data").some(
      (model) => at(model, "id") === "service/auto",
    );
  };
  expect([await seenWith("acme/alpha"), await seenWith("own/only")]).toEqual([true, false]);
});

test("a key's allowed_models limit its list, and all=1 shows the rest", async () => {
  const created = await gateway.post(
    "/keys",
    { name: "narrow", allowed_models: ["ACME/Alpha"] },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  const narrow = { authorization: `Bearer ${textAt(await created.json(), "key")}` };
  expect(await ids("", narrow)).toEqual(["acme/alpha"]);
  expect(await ids("?all=1", narrow)).toContain("acme/zebra");
});

test("pages follow each other and report the total count", async () => {
  const all = listAt(await body("", anonymous), "data").map((model) => textAt(model, "id"));
  const paged: string[] = [];
  let query = "?limit=2&sort=name";
  for (let page = 0; page <= all.length / 2; page++) {
    const seen = await body(query, anonymous);
    expect(at(seen, "total_count")).toBe(all.length);
    paged.push(...listAt(seen, "data").map((model) => textAt(model, "id")));
    const next = at(seen, "links.next");
    if (typeof next !== "string") break;
    query = new URL(next, gateway.origin).search;
  }
  expect(paged).toEqual(all.toSorted());
  expect(at(await body("", anonymous), "links.next")).toBeNull();
  expect(listAt(await body(`?offset=${all.length}`, anonymous), "data")).toEqual([]);
  for (const wrong of ["limit=0", "offset=-1", "limit=two"]) {
    expect((await fetch(`${gateway.baseUrl}/models?${wrong}`)).status).toBe(400);
  }
});

test("the count equals the length of the list", async () => {
  const count = listAt(await body("", anonymous), "data").length;
  expect(count).toBeGreaterThan(served.length);
  for (const headers of [anonymous, { authorization: `Bearer ${testManagementKey}` }])
    expect(await (await fetch(`${gateway.baseUrl}/models/count`, { headers })).json()).toEqual({
      count,
      data: { count },
    });
});

test("anonymous callers have the rate limit tier ip", async () => {
  const { headers } = await fetch(`${gateway.baseUrl}/models`);
  expect([headers.get("x-ratelimit-tier"), headers.get("x-ratelimit-limit")]).toEqual([
    "ip",
    "300",
  ]);
  expect((await gateway.get("/models")).headers.get("x-ratelimit-tier")).toBe("enterprise");
});

test("context lengths are numbers", async () => {
  for (const model of listAt(await body(""), "data"))
    expect(numberAt(model, "context_length")).toBeGreaterThan(0);
});
