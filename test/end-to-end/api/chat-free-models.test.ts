import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at } from "./at.ts";
import { bootstrapWith } from "./bootstrap-with.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { readChatStream } from "./read-chat-stream.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    bootstrap: bootstrapWith({ creditsNanoUsd: 0n }),
    providers: [
      acme(upstream.baseUrl, {
        models: [
          { id: "acme/tiny:free" },
          { id: "acme/gift:free", pricing: { prompt: "1", completion: "1" } },
          { id: "acme/zero", pricing: { prompt: "0", completion: "0" } },
          { id: "acme/large", pricing: { prompt: "1", completion: "1" } },
        ],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const moneyHeaders = [
  "x-service-credits-balance-at-admission",
  "x-service-credits-balance-after-debit",
  "x-service-credits-charged",
];

describe.each(["acme/tiny:free", "acme/gift:free", "acme/zero"])(
  "%s, with an empty balance",
  (model) => {
    test.each([false, true])(
      "serves at a cost of 0 without billing headers (stream: %p)",
      async (stream) => {
        const response = await gateway.post("/chat/completions", chatRequest({ model, stream }), {
          headers: { "x-service-balance-after-debit": "true" },
        });
        expect(response.status).toBe(200);
        for (const name of moneyHeaders) expect(response.headers.get(name)).toBeNull();
        const id = response.headers.get("x-service-trace-id");
        const last = stream
          ? (await readChatStream(response)).chunks.at(-1)
          : await response.json();
        expect(at(last, "usage")).toMatchObject({
          prompt_tokens: 11,
          completion_tokens: 7,
          cost: 0,
        });
        const generation: unknown = await (await gateway.get(`/generation/${id}`)).json();
        expect(at(generation, "data")).toMatchObject({
          total_cost: 0,
          hold: { reserved_usd: 0, charged_usd: 0, uncollected_usd: 0 },
        });
      },
    );
  },
);

test("usage stays 0 for the credits and for the key", async () => {
  expect(await (await gateway.get("/credits")).json()).toEqual({
    balance: 0,
    monthly_balance: 0,
    topup_balance: 0,
    used: 0,
    today_cost: 0,
    currency: "usd",
    data: { total_credits: 0, total_usage: 0 },
  });
  expect(at(await (await gateway.get("/auth/key")).json(), "key.usage")).toBe(0);
});

test("a paid model returns 402, also with a free fallback model", async () => {
  expect(await errorOf(await gateway.post("/chat/completions", chatRequest()))).toMatchObject({
    status: 402,
    code: "insufficient_balance",
  });
  const refused = await gateway.post(
    "/chat/completions",
    chatRequest({ models: ["acme/tiny:free"] }),
  );
  expect(await errorOf(refused)).toMatchObject({ status: 402, code: "insufficient_balance" });
});
