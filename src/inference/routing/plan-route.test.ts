import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { picoPerTokenFromUsdPerMillion } from "../../platform/lib/money.ts";
import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import type { ProviderFilter } from "./candidate.ts";
import { HealthWindows } from "./health-windows.ts";
import { planRoute } from "./plan-route.ts";
import { providerFilter } from "./provider-filter.ts";

const usd = (price: string): bigint => picoPerTokenFromUsdPerMillion(price) ?? 0n;

const timeouts = { connectMs: 1, firstTokenMs: 1, idleMs: 1, totalMs: 1 };

/** `name price [flags]` as a route; the price is that of input plus output in USD per million tokens. */
function route(text: string): UpstreamRoute {
  const [id = "", price = "0", ...flags] = text.split(" ");
  return {
    provider: {
      id, name: `${id} Inc`, baseUrl: "http://127.0.0.1", apiKey: "k", dialects: { chat: "openai-chat" },
      credentialHeader: { name: "authorization", prefix: "Bearer " }, timeouts, quirks: {},
      dataPolicy: { zdr: flags.includes("zdr") },
    },
    upstreamModel: "m",
    price: { version: id, base: { inputTokens: usd(price), outputTokens: 0n } },
    ...(flags.includes("fp8") ? { quantization: "fp8" } : {}),
    ...(flags.includes("no-tools") ? { supportedParameters: ["temperature"] } : {}),
    ...(flags.includes("short") ? { maxCompletionTokens: 1_000 } : {}),
  };
}

const model = (id: string, routes: readonly string[]): CatalogModel => ({
  id, displayName: id, owner: "acme", surface: "chat", category: "text", contextLength: 8_000, capabilities: [], addedAtMs: 0,
  routes: routes.map(route),
});

/** The order of a plan as text; `random` 0 draws the cheapest. */
function order(options: {
  models: readonly CatalogModel[];
  provider?: unknown;
  outage?: readonly string[];
  tools?: boolean;
  maxOutputTokens?: number;
  random?: number;
}): string {
  const health = new HealthWindows(new FakeClock());
  for (const provider of options.outage ?? []) for (let count = 0; count < 3; count += 1) health.recordFailure(provider);
  const preferences: ProviderFilter = providerFilter({ provider: options.provider, suffixSort: undefined, forcedProviders: undefined });
  const plan = planRoute({
    models: options.models, preferences, needsTools: options.tools ?? false, parameters: [], maxOutputTokens: options.maxOutputTokens,
  }, { health, random: () => options.random ?? 0, isServable: () => true });
  return plan.candidates.map((candidate) => candidate.route.provider.id).join(" ");
}

const three = [model("acme/large", ["dear 3", "cheap 1", "middle 2"])];

describe("rules of the provider object", () => {
  test.each([
    ["default: drawn by price, the rest by price", {}, "cheap middle dear"],
    ["an outage puts a provider last", { outage: ["cheap"] }, "middle dear cheap"],
    ["only", { provider: { only: ["dear"] } }, "dear"],
    ["only, by display name", { provider: { only: ["Dear Inc"] } }, "dear"],
    ["ignore", { provider: { ignore: ["cheap"] } }, "middle dear"],
    ["order turns load balancing off and ignores outages", { provider: { order: ["middle", "dear"] }, outage: ["middle"] }, "middle dear cheap"],
    ["allow_fallbacks false leaves the top candidate", { provider: { allow_fallbacks: false } }, "cheap"],
    ["order without fallbacks", { provider: { order: ["dear"], allow_fallbacks: false } }, "dear"],
    ["sort price", { provider: { sort: "price" }, outage: ["cheap"] }, "cheap middle dear"],
    ["sort cost is price", { provider: { sort: "cost" } }, "cheap middle dear"],
    ["max_price is hard", { provider: { max_price: { prompt: "2" } } }, "cheap middle"],
    ["a max_price that nobody meets leaves nothing", { provider: { max_price: { prompt: "0.5" } } }, ""],
  ])("%s", (_, options, expected) => {
    expect(order({ models: three, ...options })).toBe(expected);
  });

  test.each([
    ["tools need a route that takes them", { tools: true }, "c"],
    ["max_tokens needs a route that goes that far", { maxOutputTokens: 2_000 }, "a c"],
    ["quantizations", { provider: { quantizations: ["fp8"] } }, "c"],
    ["zdr", { provider: { zdr: true } }, "a"],
  ])("%s", (_, options, expected) => {
    expect(order({ models: [model("acme/mixed", ["a 1 zdr no-tools", "b 2 short no-tools", "c 3 fp8"])], ...options })).toBe(expected);
  });

  const two = [model("acme/large", ["a 5", "b 6"]), model("acme/small", ["c 1", "a 2"])];
  test("models keep their order, unless the partition is none", () => {
    expect(order({ models: two, provider: { sort: "price" } })).toBe("a b c a");
    expect(order({ models: two, provider: { sort: { by: "price", partition: "none" } } })).toBe("c a a b");
  });

  test("a preference that is wrong is named", () => {
    expect(() => order({ models: three, provider: { sort: "vibes" } })).toThrow(/provider\.sort/);
    expect(() => order({ models: three, provider: { max_price: { prompt: "cheap" } } })).toThrow(/provider\.max_price\.prompt/);
  });
});

test("a price of 1 is drawn nine times as often as a price of 3", () => {
  const counts = { cheap: 0, dear: 0 };
  const models = [model("acme/large", ["dear 3", "cheap 1"])];
  const draws = 10_000;
  for (let index = 0; index < draws; index += 1) {
    counts[order({ models, random: (index + 0.5) / draws }).split(" ")[0] as "cheap" | "dear"] += 1;
  }
  expect(counts.cheap / counts.dear).toBeCloseTo(9, 1);
});

describe("outages", () => {
  test("two failures in half a minute are an outage, unless most attempts succeed; it passes", () => {
    const clock = new FakeClock();
    const health = new HealthWindows(clock);
    health.recordFailure("a");
    expect(health.hasOutage("a")).toBe(false);
    health.recordFailure("a");
    expect(health.hasOutage("a")).toBe(true);
    for (let count = 0; count < 3; count += 1) health.recordSuccess("a");
    expect(health.hasOutage("a")).toBe(false);
    health.recordFailure("a");
    health.recordFailure("a");
    expect(health.hasOutage("a")).toBe(true);
    clock.advance(31_000);
    expect(health.hasOutage("a")).toBe(false);
  });
});
