import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { factsText, type CatalogFacts } from "../../../src/inference/catalog/catalog-facts.ts";
import { ConfigurationError } from "../../../src/platform/config/configuration-error.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { isNightly } from "../../support/nightly.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatChunks } from "../../support/upstream/openai-chat-fixtures.ts";
import { end, head, sse } from "../../support/upstream/steps.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

const model = (id: string, price: string, more: Record<string, unknown> = {}) => ({
  id,
  pricing: { prompt: price, completion: price },
  context_length: 1_000,
  ...more,
});

let upstream: FaultUpstream;
let other: FaultUpstream;
let clock: FakeClock;
let gateway: TestGateway;
beforeAll(async () => {
  [upstream, other] = await Promise.all([startFaultUpstream(), startFaultUpstream()]);
  clock = new FakeClock();
  gateway = await startGateway(
    { providers: [acme(upstream.baseUrl, { models: [model("acme/large", "10")] })] },
    { clock },
  );
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
  other.stop();
});
/** Each test begins with the catalog of the start. */
beforeEach(() => void refresh([model("acme/large", "10")]));

const refresh = (
  models: unknown[],
  { baseUrl = upstream.baseUrl, ...changes }: Record<string, unknown> & { baseUrl?: string } = {},
) => gateway.app.refreshCatalog({ providers: [acme(baseUrl, { models, ...changes })] });

/** What a request cost, and how that is explained. */
async function explained(
  answer: Response,
): Promise<{ cost: number; version: string; perMillion: unknown; charged: number }> {
  const text = await answer.text();
  const id = answer.headers.get("x-service-trace-id") ?? "";
  const record: unknown = await (await gateway.get(`/generation/${id}`)).json();
  const cost = Number(/"cost":([\d.e-]+)/.exec(text)?.[1]);
  const price = at(record, "data.price");
  const charged = numberAt(record, "data.total_cost");
  return {
    cost,
    charged,
    version: textAt(price, "version"),
    perMillion: at(price, "usd_per_million"),
  };
}

const ask = (fields: Record<string, unknown> = {}): Promise<Response> =>
  gateway.post("/chat/completions", chatRequest(fields));

/** What the upstream's answers use: 11 tokens in, 7 out. */
const tokens = 18;

describe("prices", () => {
  test("a refresh applies new prices to later requests, and old charges keep the price they were made at", async () => {
    const before = await ask();
    const first = await explained(before);
    expect(first).toMatchObject({
      cost: tokens * 10e-6,
      charged: tokens * 10e-6,
      perMillion: { inputTokens: "10", outputTokens: "10" },
    });
    const change = refresh([model("acme/large", "30")]);
    expect([change.added, change.removed, change.repriced.length]).toEqual([[], [], 1]);
    const second = await explained(await ask());
    expect(second).toMatchObject({
      cost: tokens * 30e-6,
      perMillion: { inputTokens: "30", outputTokens: "30" },
    });
    expect([second.version]).toEqual([...change.repriced]);
    expect(second.version).toMatch(/^acme\/acme\/large@configuration-[0-9a-f]{8}$/);
    expect(first.version).not.toBe(second.version);
    const old: unknown = await (
      await gateway.get(`/generation/${before.headers.get("x-service-trace-id")}`)
    ).json();
    expect(old).toMatchObject({
      data: {
        total_cost: tokens * 10e-6,
        price: { version: first.version, usd_per_million: { inputTokens: "10" } },
      },
    });
    expect(listAt(old, "data.price.lines").map((line) => at(line, "usd_per_million"))).toEqual([
      10, 10,
    ]);
  });

  test("get their earlier version again when the earlier price returns", async () => {
    const { version } = await explained(await ask());
    refresh([model("acme/large", "30")]);
    refresh([model("acme/large", "10")]);
    expect((await explained(await ask())).version).toBe(version);
  });

  test("of a running stream stay those at its start, even if its model is removed", async () => {
    const gate = upstream.gate();
    const [first, content, ...later] = chatChunks({ usageOn: "after" }).map((chunk) => sse(chunk));
    if (first === undefined || content === undefined)
      throw new Error("the fixture has too few chunks");
    upstream.enqueue([head(), first, content, gate, ...later, sse("[DONE]"), end()]);
    const stream = await ask({ stream: true });
    await gate.reached;
    refresh([model("acme/small", "30")], { baseUrl: other.baseUrl });
    expect(await errorOf(await ask())).toMatchObject({ status: 404, code: "model_unavailable" });
    gate.open();
    expect(await explained(stream)).toMatchObject({
      cost: tokens * 10e-6,
      charged: tokens * 10e-6,
      perMillion: { inputTokens: "10" },
    });
  });
});

test("a refresh applies a route's new address, credential and upstream model to the next request", async () => {
  const askedBefore = [upstream, other].map(({ requests }) => requests.length);
  await (await ask()).text();
  refresh([model("acme/large", "10", { upstream_model: "large-v3" })], {
    baseUrl: other.baseUrl,
    api_key: "rotated",
  });
  const answer = await ask();
  await answer.text();
  const asked = [upstream, other].map(({ requests }) => requests.length);
  expect(asked).toEqual(askedBefore.map((count) => count + 1));
  const sent = other.requests.at(-1);
  expect([sent?.headers.get("authorization"), at(sent?.json(), "model")]).toEqual([
    "Bearer rotated",
    "large-v3",
  ]);
  expect(answer.headers.get("x-service-upstream-model")).toBe("large-v3");
});

/** How often the catalog changes under load at least; more until 20 requests were answered. */
const refreshes = isNightly ? 100 : 25;

test("no request fails under load while the catalog is refreshed again and again", async () => {
  const statuses: number[] = [];
  let asking = true;
  const askOn = async (): Promise<void> => {
    while (asking) {
      const answer = await ask();
      await answer.text();
      statuses.push(answer.status);
    }
  };
  const clients = Promise.all(Array.from({ length: 4 }, askOn));
  for (let round = 0; round < refreshes || statuses.length <= 20; round += 1) {
    refresh([model("acme/large", String(10 + (round % 2)))], {
      baseUrl: round % 2 === 0 ? other.baseUrl : upstream.baseUrl,
    });
    await (await gateway.get("/models/count")).text();
  }
  asking = false;
  await clients;
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
});

test("a refresh adds and removes models, and models that remain keep their created date", async () => {
  const created = async (id: string): Promise<unknown> =>
    at(await (await gateway.get(`/models/${id}`)).json(), "created");
  const before = await created("acme/large");
  clock.advance(3_600_000);
  expect(refresh([model("acme/large", "10"), model("acme/new", "1")])).toEqual({
    added: ["acme/new"],
    removed: [],
    repriced: [],
  });
  expect([await created("acme/large"), await created("acme/new")]).toEqual([
    before,
    Number(before) + 3_600,
  ]);
  expect(refresh([model("acme/new", "1")])).toMatchObject({ removed: ["acme/large"] });
  expect(await errorOf(await gateway.get("/models/acme/large"))).toMatchObject({ status: 404 });
});

test("a refresh updates the lists of models and providers and the routing presets", async () => {
  const providers = async (): Promise<unknown[]> =>
    listAt(await (await gateway.get("/providers")).json(), "data");
  const countOf = async (): Promise<unknown> =>
    at(
      (await providers()).find((entry) => at(entry, "id") === "acme"),
      "model_count",
    );
  expect(await countOf()).toBe(1);
  refresh([model("acme/large", "10"), model("acme/new:free", "0")]);
  expect(await countOf()).toBe(2);
  expect(at(await (await gateway.get("/models/service/free")).json(), "members")).toEqual([
    "acme/new:free",
  ]);
});

test("sandbox: auto turns the sandbox off when a provider with a credential is added, and on without one", async () => {
  const simulated = await startGateway({ sandbox: "auto" });
  try {
    const status = async (): Promise<number> => {
      const answer = await simulated.post(
        "/chat/completions",
        chatRequest({ model: "sandbox/chat:free" }),
      );
      await answer.text();
      return answer.status;
    };
    expect(await status()).toBe(200);
    simulated.app.refreshCatalog({ providers: [acme(upstream.baseUrl)] });
    expect(await status()).toBe(404);
    simulated.app.refreshCatalog({ providers: [] });
    expect(await status()).toBe(200);
  } finally {
    await simulated.stop();
  }
});

describe("a facts file", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "switchyard-facts-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const facts = (snapshot: string, input: string): CatalogFacts => ({
    source: "test",
    licence: "none",
    snapshot,
    units: "USD per million tokens",
    aliases: {},
    rows: [
      {
        id: "openai/tiny",
        provider: "openai",
        upstream: "tiny",
        name: "Tiny",
        surface: "chat",
        prices: { input, output: "1" },
        capabilities: ["chat"],
      },
    ],
  });

  test("of the operator replaces the bundled one, and its date is the price version", async () => {
    const factsPath = join(directory, "facts.json");
    writeFileSync(factsPath, factsText(facts("2026-11-01", "1")));
    gateway.app.refreshCatalog({ providers: [], factsPath });
    expect(
      [...gateway.app.catalog().models.keys()].filter((id) => !id.startsWith("service/")),
    ).toEqual(["openai/tiny"]);
    writeFileSync(factsPath, factsText(facts("2026-11-02", "2")));
    expect(gateway.app.refreshCatalog({ providers: [], factsPath }).repriced).toEqual([
      "openai/openai/tiny@2026-11-02",
    ]);
    expect(
      at(
        await (await gateway.get("/models/openai/tiny")).json(),
        "pricing.list_pricing.input_per_1m",
      ),
    ).toBe(2);
  });

  test.each([
    ["is not JSON", "{"],
    ["has an unknown field", JSON.stringify({ ...facts("2026-11-01", "1"), extra: 1 })],
    ["has a negative price", JSON.stringify(facts("2026-11-01", "-1"))],
  ])("that %s is rejected and leaves the catalog unchanged", async (_, text) => {
    const before = gateway.app.catalog();
    const factsPath = join(directory, "facts.json");
    writeFileSync(factsPath, text);
    expect(() => gateway.app.refreshCatalog({ providers: [], factsPath })).toThrow(
      ConfigurationError,
    );
    expect(gateway.app.catalog()).toBe(before);
    const answer = await ask();
    await answer.text();
    expect(answer.status).toBe(200);
  });
});
