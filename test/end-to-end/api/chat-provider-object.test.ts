import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

/**
 * Three providers of one model: `cheap` logs what it is sent and has small weights, `solid` is
 * dear, keeps nothing and has large ones, `middle` is between them and declares neither.
 */
const offers = {
  cheap: {
    data_policy: { zdr: false, data_collection: "allow", distillable_text: false },
    model: {
      pricing: { prompt: "1", completion: "1" },
      quantization: "int4",
      context_length: 8_000,
      max_completion_tokens: 100,
      supported_parameters: ["temperature"],
    },
  },
  middle: {
    model: {
      pricing: { prompt: "2", completion: "2" },
      context_length: 32_000,
      max_completion_tokens: 1_000,
    },
  },
  solid: {
    data_policy: { zdr: true, data_collection: "deny", distillable_text: true },
    model: {
      pricing: { prompt: "3", completion: "3" },
      quantization: "bf16",
      context_length: 128_000,
      supported_parameters: ["tools", "temperature", "seed", "max_tokens", "reasoning_effort"],
    },
  },
};

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    providers: Object.entries(offers).map(([id, { model, ...policy }]) =>
      provider({
        id,
        name: `${id} Cloud`,
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: id,
        ...policy,
        models: [{ id: "acme/large", ...model }],
      }),
    ),
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/** The chain of providers for a request when every one of them fails but the last that is tried. */
async function chain(
  fields: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<string[]> {
  upstream.script(json({}, { status: 503 }));
  const failed: unknown = await (
    await gateway.post("/chat/completions", chatRequest(fields), { headers })
  ).json();
  const attempts = at(failed, "error.metadata.upstream_attempts");
  if (Array.isArray(attempts)) return attempts.map((attempt) => textAt(attempt, "backend"));
  return at(failed, "error.metadata.upstream_backend") === undefined
    ? []
    : [textAt(failed, "error.metadata.upstream_backend")];
}

const all = ["cheap", "middle", "solid"];
const tools = [{ type: "function", function: { name: "f" } }];
const byPrice = { sort: "price" };

/**
 * The `provider` object, other fields of the request, and the providers in the order in which they
 * are tried.
 */
const rows: readonly [
  preferences: Record<string, unknown>,
  fields: Record<string, unknown>,
  tried: string[],
][] = [
  [{ sort: "price" }, {}, all],
  [{ sort: "cost" }, {}, all],
  [{ sort: { by: "price" } }, {}, all],
  [{ sort: { by: "price", partition: "none" } }, {}, all],
  [{ sort: "exacto" }, {}, ["middle", "solid", "cheap"]],
  [{ order: ["solid"] }, {}, ["solid", "cheap", "middle"]],
  [{ order: ["middle", "cheap"] }, {}, ["middle", "cheap", "solid"]],
  [{ order: ["Solid Cloud", "MIDDLE"] }, {}, ["solid", "middle", "cheap"]],
  [{ order: ["nobody", "solid"] }, {}, ["solid", "cheap", "middle"]],
  [{ order: ["solid"], allow_fallbacks: false }, {}, ["solid"]],
  [{ ...byPrice, allow_fallbacks: false }, {}, ["cheap"]],
  [{ ...byPrice, only: ["solid", "cheap"] }, {}, ["cheap", "solid"]],
  [{ only: ["middle cloud"] }, {}, ["middle"]],
  [{ only: ["nobody"] }, {}, []],
  [{ ...byPrice, ignore: ["middle"] }, {}, ["cheap", "solid"]],
  [{ ignore: all }, {}, []],
  [{ ...byPrice, max_price: { prompt: "2" } }, {}, ["cheap", "middle"]],
  [{ ...byPrice, max_price: { completion: "1.5" } }, {}, ["cheap"]],
  [{ max_price: { prompt: "0.5" } }, {}, []],
  [{ ...byPrice, zdr: true }, {}, ["solid"]],
  [{ ...byPrice, zdr: false }, {}, all],
  [{ ...byPrice, data_collection: "deny" }, {}, ["solid"]],
  [{ ...byPrice, data_collection: "allow" }, {}, all],
  [{ ...byPrice, enforce_distillable_text: true }, {}, ["solid"]],
  [{ ...byPrice, quantizations: ["int4"] }, {}, ["cheap"]],
  [{ ...byPrice, quantizations: ["bf16", "int4"] }, {}, ["cheap", "solid"]],
  [{ ...byPrice, min_context: 32_000 }, {}, ["middle", "solid"]],
  [byPrice, { min_context: 100_000 }, ["solid"]],
  [{ ...byPrice, min_context: 10_000 }, { min_context: 100_000 }, ["solid"]],
  [{ ...byPrice, min_context: 100_000 }, { min_context: 10_000 }, ["solid"]],
  [{ ...byPrice, require_params: ["tools"] }, {}, ["middle", "solid"]],
  [byPrice, { require_params: ["seed"] }, ["middle", "solid"]],
  [{ ...byPrice, require_parameters: true }, { seed: 1 }, ["middle", "solid"]],
  [{ ...byPrice, require_parameters: true }, {}, all],
  [{ ...byPrice, require_parameters: true }, { max_completion_tokens: 10 }, ["middle", "solid"]],
  [{ ...byPrice, require_params: ["reasoning"] }, {}, ["middle", "solid"]],
  [byPrice, { seed: 1 }, all],
  [byPrice, { tools }, ["middle", "solid"]],
  [byPrice, { tool_choice: "auto" }, ["middle", "solid"]],
  [byPrice, { tools: [] }, all],
  [byPrice, { functions: [{ name: "f" }] }, ["middle", "solid"]],
  [byPrice, { function_call: "auto" }, ["middle", "solid"]],
  [byPrice, { functions: [] }, all],
  [byPrice, { max_tokens: 100 }, all],
  [byPrice, { max_tokens: 101 }, ["middle", "solid"]],
  [byPrice, { max_completion_tokens: 1_001 }, ["solid"]],
  [{}, { model: "acme/large:floor" }, all],
  [{}, { model: "ACME/Large:FLOOR" }, all],
  [{}, { model: "acme/large:exacto" }, ["middle", "solid", "cheap"]],
  [{ sort: "price" }, { model: "acme/large:exacto" }, all],
];

test.each(rows)("provider %j with %j tries %j", async (preferences, fields, tried) => {
  expect(await chain({ provider: preferences, ...fields })).toEqual(tried);
});

test("without sort and order the load is balanced and every provider is tried", async () => {
  for (let count = 0; count < 5; count += 1) expect((await chain({})).sort()).toEqual(all);
});

describe("X-Service-Provider", () => {
  test.each([
    ["solid", {}, ["solid"]],
    ["middle, cheap", {}, ["middle", "cheap"]],
    ["Solid Cloud,cheap", {}, ["solid", "cheap"]],
    ["middle", { provider: { order: ["solid"], only: ["solid"] } }, ["middle"]],
    [" , ", { provider: byPrice }, all],
  ])("%p with %j tries %j", async (value, fields, tried) => {
    expect(await chain(fields, { "x-service-provider": value })).toEqual(tried);
  });

  test("an unknown backend returns 404 unknown_provider", async () => {
    const response = await gateway.post("/chat/completions", chatRequest(), {
      headers: { "x-service-provider": "nobody" },
    });
    expect(await errorOf(response)).toMatchObject({
      status: 404,
      code: "unknown_provider",
      type: "not_found_error",
    });
  });
});

test("sorting by latency or throughput puts measured providers before unmeasured ones, by suffix or sort", async () => {
  upstream.script(healthyChat);
  await (
    await gateway.post(
      "/chat/completions",
      chatRequest({ stream: true, provider: { only: ["middle"] } }),
    )
  ).text();
  for (const fields of [
    { provider: { sort: "latency" } },
    { provider: { sort: "ttft" } },
    { provider: { sort: "throughput" } },
    { provider: { sort: "tps" } },
    { model: "acme/large:fast" },
    { model: "acme/large:nitro" },
  ])
    expect((await chain(fields))[0]).toBe("middle");
});

describe("allowed_models of a key", () => {
  async function keyFor(allowedModels: string[]): Promise<Record<string, string>> {
    const created = await gateway.post(
      "/keys",
      { name: "narrow", allowed_models: allowedModels },
      { headers: { authorization: `Bearer ${testManagementKey}` } },
    );
    return { authorization: `Bearer ${textAt(await created.json(), "key")}` };
  }

  test("match ids in any case, also with a suffix", async () => {
    const headers = await keyFor(["ACME/Large"]);
    expect(await chain({ provider: byPrice }, headers)).toEqual(all);
    expect(await chain({ model: "acme/LARGE:floor" }, headers)).toEqual(all);
  });

  test("a request for a model outside the list returns 403, whatever its fallback models", async () => {
    const headers = await keyFor(["acme/other"]);
    const response = await gateway.post("/chat/completions", chatRequest(), { headers });
    expect(await errorOf(response)).toMatchObject({ status: 403, code: "forbidden" });
  });
});
