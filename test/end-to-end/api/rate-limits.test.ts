import { describe, expect, test } from "bun:test";
import type { PlanId } from "../../../src/identity/workspaces/workspace-store.ts";
import { acme, startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { textAt } from "./at.ts";
import { bootstrapWith } from "./bootstrap-with.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

const pricing = { prompt: "0.50", completion: "1.50" };

/** A gateway on a plan with a paid and a free model. */
async function withPlan(
  plan: PlanId,
  work: (gateway: TestGateway) => Promise<void>,
  perMinute?: number,
): Promise<void> {
  const upstream = await startFaultUpstream();
  const gateway = await startGateway({
    bootstrap: bootstrapWith({ plan }),
    plans: perMinute === undefined ? {} : { [plan]: { perMinute } },
    providers: [
      acme(upstream.baseUrl, { models: [{ id: "acme/large", pricing }, { id: "acme/tiny:free" }] }),
    ],
  });
  await work(gateway).finally(() => gateway.stop());
  upstream.stop();
}

/** The window's headers as the contract has them. */
const windowOf = (limit: number, tier: string): Record<string, string | null> => ({
  "x-ratelimit-limit": String(limit),
  "x-ratelimit-window": "60",
  "x-ratelimit-tier": tier,
  "ratelimit-limit": String(limit),
  "ratelimit-policy": `${limit};w=60`,
  "x-ratelimit-remaining": null,
  "x-ratelimit-reset": null,
  "ratelimit-remaining": null,
  "ratelimit-reset": null,
});

const seen = ({ headers }: Response): Record<string, string | null> =>
  Object.fromEntries(Object.keys(windowOf(0, "")).map((name) => [name, headers.get(name)]));

const paid = (gateway: TestGateway): Promise<Response> =>
  gateway.post("/chat/completions", chatRequest());

describe.each([
  ["free", 600, "paid-model", 2400, "free-model"],
  ["payg", 600, "paid-model", 2400, "free-model"],
  ["pro", 1200, "pro", 2400, "free-model"],
  ["pro_plus", 1800, "power", 2400, "free-model"],
  ["max", 1800, "power", 2400, "free-model"],
  ["enterprise", 2400, "enterprise", 2400, "enterprise"],
] as const)("on the plan %s", (plan, paidLimit, paidTier, freeLimit, freeTier) => {
  test(`paid models have tier ${paidTier} with ${paidLimit} requests, free ones ${freeTier} with ${freeLimit}`, () =>
    withPlan(plan, async (gateway) => {
      expect(seen(await paid(gateway))).toEqual(windowOf(paidLimit, paidTier));
      const free = await gateway.post(
        "/chat/completions",
        chatRequest({ model: "acme/tiny:free", stream: true }),
      );
      expect(seen(free)).toEqual(windowOf(freeLimit, freeTier));
      await free.text();
      expect(seen(await gateway.get("/credits"))).toEqual(windowOf(paidLimit, paidTier));
      expect(seen(await gateway.post("/chat/completions", "no JSON"))).toEqual(
        windowOf(paidLimit, paidTier),
      );
    }));
});

test("on the plan go: 60 a minute and 3000 in five hours, which free models do not reduce", () =>
  withPlan("go", async (gateway) => {
    const first = await paid(gateway);
    expect(seen(first)).toMatchObject({
      ...windowOf(60, "go"),
      "x-ratelimit-remaining": "2999",
      "ratelimit-remaining": "2999",
      "x-ratelimit-reset": expect.any(String),
      "ratelimit-reset": expect.any(String),
    });
    expect(Number(first.headers.get("x-ratelimit-reset"))).toBeWithin(17_900, 18_061);
    expect(
      seen(await gateway.post("/chat/completions", chatRequest({ model: "acme/tiny:free" }))),
    ).toEqual(windowOf(2400, "free-model"));
    expect((await paid(gateway)).headers.get("x-ratelimit-remaining")).toBe("2998");
    expect(seen(await gateway.get("/credits"))).toEqual(windowOf(60, "go"));
  }));

test("above the tier: 429 with Retry-After 60 and the window's headers, and nothing sent or charged", () =>
  withPlan(
    "pro",
    async (gateway) => {
      for (let count = 0; count < 3; count += 1) expect((await paid(gateway)).status).toBe(200);
      const refused = await paid(gateway);
      expect(seen(refused)).toEqual(windowOf(3, "pro"));
      const error = await errorOf(refused);
      expect(error).toMatchObject({
        status: 429,
        code: "rate_limit_exceeded",
        type: "rate_limit_error",
      });
      expect(error.headers.get("retry-after")).toBe("60");
      expect(error.headers.get("x-should-retry")).toBeNull();
      expect(gateway.app.ledger.openHoldCount).toBe(0);
      expect(
        (await gateway.post("/chat/completions", chatRequest({ model: "acme/tiny:free" }))).status,
      ).toBe(200);
    },
    3,
  ));

test("a key's own rate_limit lowers its tier's limit, for this key only", () =>
  withPlan("enterprise", async (gateway) => {
    const created = await gateway.post(
      "/keys",
      { name: "slow", rate_limit: 2 },
      { headers: { authorization: `Bearer ${testManagementKey}` } },
    );
    const slow = { authorization: `Bearer ${textAt(await created.json(), "key")}` };
    const send = (): Promise<Response> =>
      gateway.post("/chat/completions", chatRequest(), { headers: slow });
    const statuses = [(await send()).status, (await send()).status, (await send()).status];
    expect(statuses).toEqual([200, 200, 429]);
    const refused = await errorOf(await send());
    expect(refused.headers.get("x-ratelimit-limit")).toBe("2");
    expect(refused.message).toContain("More than 2 requests came within 60 seconds (the key's");
    expect((await paid(gateway)).headers.get("x-ratelimit-limit")).toBe("2400");
  }));

test("anonymous requests are limited to 300 a minute per address over all public endpoints", () =>
  withPlan("enterprise", async (gateway) => {
    const paths = ["/models/count", "/providers", "/models?category=audio"];
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, index) => fetch(gateway.baseUrl + paths[index % 3])),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(seen(answers[0] ?? Response.error())).toEqual(windowOf(300, "ip"));
    const error = await errorOf(await fetch(`${gateway.baseUrl}/models`));
    expect(error).toMatchObject({
      status: 429,
      code: "ip_rate_limit_exceeded",
      type: "rate_limit_error",
    });
    expect(error.headers.get("retry-after")).toBe("60");
    expect((await gateway.get("/models")).status).toBe(200);
  }));
