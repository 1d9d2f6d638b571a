import { afterEach, expect, test } from "bun:test";
import { FakeClock } from "../../support/fake-clock.ts";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { refusingBaseUrl, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Prices so far apart that the draw always falls on the first while it is primary. */
const entry = (id: string, baseUrl: string, fields: Record<string, unknown> = {}) =>
  provider({
    id,
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "k",
    models: [
      {
        id: "acme/large",
        pricing: { prompt: id === "first" ? "0.001" : "1000", completion: "0.001" },
      },
    ],
    ...fields,
  });

async function open(
  first: Record<string, unknown>,
  address?: string,
): Promise<{ gateway: TestGateway; clock: FakeClock }> {
  const upstream = await startFaultUpstream();
  ends.push(() => upstream.stop());
  const clock = new FakeClock();
  const gateway = await startGateway(
    {
      providers: [
        entry("first", address ?? upstream.baseUrl, first),
        entry("second", upstream.baseUrl),
      ],
    },
    { clock },
  );
  ends.push(() => gateway.stop());
  return { gateway, clock };
}

/** Who was asked, in order. */
const chainOf = async (
  gateway: TestGateway,
  changes: Record<string, unknown> = {},
): Promise<string | null> => {
  const response = await gateway.post(
    "/chat/completions",
    chatRequest({ model: "acme/large", ...changes }),
  );
  await response.text();
  return response.headers.get("x-service-provider-chain");
};

async function explained(gateway: TestGateway): Promise<{ order: string[]; leftOut: string[] }> {
  const body: unknown = await (
    await gateway.post("/routing/explain", chatRequest({ model: "acme/large" }))
  ).json();
  return {
    order: listAt(body, "candidates").map((candidate) => textAt(candidate, "provider")),
    leftOut: listAt(body, "left_out").map(
      (left) => `${textAt(left, "provider")} ${textAt(left, "rule")}`,
    ),
  };
}

test("a provider with a spent daily budget is excluded until the next day, or 503 if it is the only one", async () => {
  const { gateway, clock } = await open({ budget_usd_per_day: 0.000_000_01 });
  expect(await chainOf(gateway)).toBe("first");
  expect(await chainOf(gateway)).toBe("second");
  expect(await explained(gateway)).toEqual({
    order: ["second"],
    leftOut: ["first budget_exhausted"],
  });
  const response = await gateway.post(
    "/chat/completions",
    chatRequest({ model: "acme/large", provider: { only: ["first"] } }),
  );
  expect([response.status, (await errorOf(response)).code]).toEqual([503, "service_unavailable"]);
  clock.advance(12 * 3_600_000);
  await gateway.app.insights.health.check();
  expect(await chainOf(gateway)).toBe("first");
});

test("an unreachable provider is tried last, then excluded, then tried last, with an event each time", async () => {
  const { gateway, clock } = await open({}, refusingBaseUrl());
  const only = { provider: { only: ["first"] } };
  for (let count = 0; count < 5; count += 1) await chainOf(gateway, only);
  clock.advance(40_000);
  expect(gateway.app.insights.stateOf("first")).toBe("deprioritized");
  expect((await explained(gateway)).order).toEqual(["second", "first"]);
  for (let count = 0; count < 10; count += 1) await chainOf(gateway, only);
  expect(gateway.app.insights.stateOf("first")).toBe("quarantined");
  expect(await explained(gateway)).toEqual({ order: ["second"], leftOut: ["first quarantined"] });
  expect(await chainOf(gateway, { provider: { order: ["first"] } })).toBe("second");
  clock.advance(31_000);
  expect((await explained(gateway)).order).toEqual(["second", "first"]);
  const events = gateway.app.insights.health
    .snapshot()
    .events.filter(({ upstream_id: id }) => id === "first");
  expect(events.map(({ to }) => to)).toEqual(["down", "degraded"]);
});

test("a failing provider gets a hundred fallbacks, then is skipped with retry_budget in the record", async () => {
  const [sick, well] = [await startFaultUpstream(), await startFaultUpstream()];
  sick.script(json(chatError("no"), { status: 500 }));
  const priced = (id: string, baseUrl: string, price: string) =>
    provider({
      id,
      base_url: baseUrl,
      dialect: "openai-chat",
      api_key: "k",
      models: [{ id: "acme/large", pricing: { prompt: price, completion: price } }],
    });
  const gateway = await startGateway(
    {
      providers: [
        priced("first", refusingBaseUrl(), "0.001"),
        priced("second", sick.baseUrl, "0.002"),
        priced("third", well.baseUrl, "0.003"),
      ],
    },
    { clock: new FakeClock() },
  );
  ends.push(
    () => sick.stop(),
    () => well.stop(),
    () => gateway.stop(),
  );
  const chains: Record<string, number> = {};
  for (let count = 0; count < 110; count += 1) {
    const chain = String(await chainOf(gateway, { provider: { sort: "price" } }));
    chains[chain] = (chains[chain] ?? 0) + 1;
  }
  expect(chains).toEqual({ "first->second->third": 100, "first->third": 10 });
  const response = await gateway.post(
    "/chat/completions",
    chatRequest({ model: "acme/large", provider: { sort: "price" } }),
  );
  await response.text();
  const record: unknown = await (
    await gateway.get(`/generation/gen_${response.headers.get("x-service-trace-id")}`)
  ).json();
  expect(JSON.stringify(record)).toContain("second acme/large: retry_budget");
});
