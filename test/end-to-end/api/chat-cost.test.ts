import { afterAll, beforeAll, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { usageFixtures } from "../../support/upstream/openai-chat-fixtures.ts";
import { at, listAt, numberAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { readChatStream } from "./read-chat-stream.ts";

/** USD per million tokens, so a price of 0.50 is 500 nano-USD a token. */
const prices = {
  "acme/plain": { prompt: "0.50", completion: "1.50" },
  "acme/full": {
    prompt: "0.50",
    completion: "1.50",
    cache_read: "0.05",
    cache_write: "0.60",
    reasoning: "3",
    audio: "10",
    image: "0.70",
  },
  "acme/request": { prompt: "0.50", completion: "1.50", request: "0.01" },
  "acme/penny": { prompt: "0.0001", completion: "0.0003" },
};

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const models = Object.entries(prices).map(([id, pricing]) => ({ id, pricing }));
  gateway = await startGateway(
    { providers: [acme(upstream.baseUrl, { models })] },
    { clock: middayClock() },
  );
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

type Model = keyof typeof prices;

/** Model, what the upstream reports, and the charge in nano-USD as it is worked out by hand. */
const rows: readonly [
  model: Model,
  usage: Record<string, unknown>,
  chargedNano: number,
  working: string,
][] = [
  ["acme/plain", usageFixtures.plain, 16_000, "11 x 500 + 7 x 1500"],
  [
    "acme/plain",
    usageFixtures.cached,
    75_500,
    "130 x 500 + 7 x 1500: no price of their own for cached tokens",
  ],
  ["acme/full", usageFixtures.cached, 32_500, "10 x 500 + 100 x 50 + 20 x 600 + 7 x 1500"],
  ["acme/plain", usageFixtures.reasoning, 110_500, "11 x 500 + 70 x 1500: reasoning is output"],
  ["acme/full", usageFixtures.reasoning, 205_000, "11 x 500 + 63 x 3000 + 7 x 1500"],
  [
    "acme/full",
    usageFixtures.audio,
    371_000,
    "15 x 500 + 30 x 10000 + 5 x 700 + 15 x 1500 + 25 x 1500",
  ],
  ["acme/full", usageFixtures.priced, 16_000, "ours, whatever the provider says that it charges"],
  ["acme/plain", usageFixtures.zero, 0, "nothing used"],
  ["acme/request", usageFixtures.plain, 10_016_000, "10000000 a request + 16000"],
  ["acme/request", usageFixtures.zero, 10_000_000, "the request alone"],
  [
    "acme/penny",
    { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    3,
    "1.1 + 2.1 = 3.2",
  ],
  [
    "acme/penny",
    { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
    1,
    "0.2 + 0.3 = 0.5, rounded half up",
  ],
  ["acme/penny", { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }, 0, "0.1 + 0.3 = 0.4"],
  [
    "acme/plain",
    { prompt_tokens: 999_999, completion_tokens: 333_333, total_tokens: 1_333_332 },
    999_999_000,
    "999999 x 500 + 333333 x 1500",
  ],
];

let chargedNano = 0;

/** The usage object that the client sees, from whichever form of answer. */
async function usageSeen(
  model: Model,
  options: { usage: unknown; form: "whole" | "finish" | "after" },
): Promise<{ usage: unknown; id: string }> {
  const { usage, form } = options;
  upstream.enqueue((request) =>
    chatAnswer(request, { usage, usageOn: form === "finish" ? "finish" : "after" }),
  );
  const response = await gateway.post(
    "/chat/completions",
    chatRequest({ model, stream: form !== "whole" }),
  );
  const id = response.headers.get("x-service-trace-id") ?? "";
  if (form === "whole") return { usage: at(await response.json(), "usage"), id };
  const shown = (await readChatStream(response)).chunks
    .map((chunk) => at(chunk, "usage"))
    .filter((seen) => seen !== undefined && seen !== null);
  expect(shown).toHaveLength(1);
  return { usage: shown[0], id };
}

for (const form of ["whole", "finish", "after"] as const) {
  test.each(rows)(
    `${form === "whole" ? "whole" : `streamed, usage on ${form}`}: %s with %j costs %d nano-USD (%p), in every place`,
    async (model, reported, nano) => {
      const { usage, id } = await usageSeen(model, { usage: reported, form });
      expect(at(usage, "cost")).toBe(nano / 1e9);
      const { cost, cost_details: costDetails, ...rest } = usage as Record<string, unknown>;
      const { cost: providerCost, ...sent } = reported;
      expect(rest).toEqual(sent);
      expect(costDetails).toEqual(
        providerCost === undefined ? undefined : { upstream_inference_cost: providerCost },
      );
      const generation = at(await (await gateway.get(`/generation/${id}`)).json(), "data");
      expect(at(generation, "total_cost")).toBe(nano / 1e9);
      expect(at(generation, "hold.charged_usd")).toBe(nano / 1e9);
      const lines = listAt(generation, "price.lines").map((line) =>
        Math.round(numberAt(line, "amount_usd") * 1e9),
      );
      expect(lines.reduce((sum, amount) => sum + amount, 0)).toBe(nano);
      expect(cost).toBe(nano / 1e9);
      chargedNano += nano;
    },
  );
}

test("the charges of these requests and the remaining balance add up to the starting credits", async () => {
  const credits: unknown = await (await gateway.get("/credits")).json();
  const used = Math.round(chargedNano / 1000) / 1e6;
  expect(credits).toMatchObject({ used, today_cost: used, currency: "usd", monthly_balance: 0 });
  expect(numberAt(credits, "balance")).toBe(numberAt(credits, "topup_balance"));
  expect(numberAt(credits, "balance") + used).toBeCloseTo(10, 6);
  const key: unknown = await (await gateway.get("/key")).json();
  expect(numberAt(key, "data.usage")).toBe(chargedNano / 1e9);
});
