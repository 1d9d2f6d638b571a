import { afterAll, beforeAll, expect, test } from "bun:test";
import { explainRouting } from "../../../src/endpoints/inference/explain-routing.ts";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const at = (id: string, prompt: string, changes = {}) =>
    provider({
      id,
      base_url: upstream.baseUrl,
      api_key: "k",
      models: [{ id: "acme/large", pricing: { prompt, completion: prompt } }],
      ...changes,
    });
  gateway = await startGateway({
    providers: [
      at("dear", "3"),
      at("cheap", "1"),
      at("private", "2", { data_policy: { zdr: true } }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const chat = {
  model: "acme/large",
  messages: [{ role: "user", content: "Hello, how are you today?" }],
  max_tokens: 1_000,
};
interface Explanation {
  candidates: { position: number; provider: string; reason: string; estimated_cost_usd: number }[];
  left_out: { provider: string; rule: string }[];
  hold_usd: number;
  error: { code: string } | null;
}
const explain = async (changes: object = {}): Promise<Explanation> => {
  const response = await gateway.post("/routing/explain", { ...chat, ...changes });
  expect(response.status).toBe(200);
  const answer: unknown = await response.json();
  // The described fields are all that there are.
  expect(explainRouting.response?.().parse(answer)).toEqual(answer);
  return answer as Explanation;
};

test("candidates are in order, with reasons, costs and the hold", async () => {
  const {
    candidates,
    left_out: leftOut,
    hold_usd: hold,
    error,
  } = await explain({ provider: { sort: "price" } });
  expect(candidates.map(({ provider: id, reason }) => `${id}: ${reason}`)).toEqual([
    "cheap: sort price",
    "private: sort price",
    "dear: sort price",
  ]);
  expect(candidates[0]?.estimated_cost_usd).toBeCloseTo(0.00103, 4);
  expect([leftOut, error]).toEqual([[], null]);
  expect(hold).toBeCloseTo(0.0031, 3);
});

test("excluded providers are named with the rule", async () => {
  const { candidates, left_out: leftOut } = await explain({ provider: { zdr: true } });
  expect(candidates.map(({ provider: id }) => id)).toEqual(["private"]);
  expect(leftOut.map(({ provider: id, rule }) => `${id}: ${rule}`).toSorted()).toEqual([
    "cheap: zdr",
    "dear: zdr",
  ]);
});

test("a request without an eligible provider is explained, not refused", async () => {
  expect(await explain({ provider: { max_price: { prompt: "0.1" } } })).toMatchObject({
    candidates: [],
    error: { code: "no_upstream" },
  });
});

test("explaining sends, holds and records nothing, and a served request records its routing", async () => {
  expect([upstream.requests.length, gateway.app.ledger.openHoldCount]).toEqual([0, 0]);
  const served = await gateway.post("/chat/completions", {
    ...chat,
    provider: { order: ["dear"], ignore: ["cheap"] },
  });
  const { id } = (await served.json()) as { id: string };
  const record = (await (await gateway.get(`/generation/${id}`)).json()) as {
    data: { routing: unknown };
  };
  expect(record.data.routing).toEqual({
    order: ["dear acme/large: order", "private acme/large: fallback"],
    left_out: ["cheap acme/large: ignore"],
  });
});

test("explains a request beyond the key's limit with its reduced hold, or with insufficient_balance", async () => {
  const { key } = (await (
    await gateway.post(
      "/keys",
      { name: "small", limit: 0.002 },
      {
        headers: { authorization: `Bearer ${testManagementKey}` },
      },
    )
  ).json()) as { key: string };
  const ask = async (fields: object): Promise<Record<string, unknown>> =>
    (
      await gateway.post(
        "/routing/explain",
        { ...chat, ...fields },
        { headers: { authorization: `Bearer ${key}` } },
      )
    ).json() as never;
  const bounded = await ask({ max_tokens: 100_000, provider: { only: ["cheap"] } });
  expect(bounded).toMatchObject({
    hold_usd: 0.002,
    candidates: [{ provider: "cheap", output_cap: expect.any(Number) }],
    error: null,
  });
  expect(bounded["worst_case_usd"]).toBeGreaterThan(0.1);
  expect(
    await ask({ max_tokens: 100_000, provider: { only: ["cheap"], require_parameters: true } }),
  ).toMatchObject({
    hold_usd: 0,
    error: { code: "insufficient_balance", metadata: { reason: "key_limit_reached" } },
  });
  expect(gateway.app.ledger.openHoldCount).toBe(0);
});
