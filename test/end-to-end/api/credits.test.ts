import { expect, test } from "bun:test";
import { startGateway, testManagementKey } from "../../support/gateway.ts";
import { bootstrapWith } from "./bootstrap-with.ts";

test("GET /credits returns every documented field to an LLM key and to a management key", async () => {
  const gateway = await startGateway({
    bootstrap: bootstrapWith({ creditsNanoUsd: 1_234_567_891n, plan: "free" }),
  });
  for (const headers of [{}, { authorization: `Bearer ${testManagementKey}` }]) {
    const response = await gateway.get("/credits", headers);
    expect(await response.json()).toEqual({
      balance: 1.234568,
      monthly_balance: 0,
      topup_balance: 1.234568,
      used: 0,
      today_cost: 0,
      currency: "usd",
      data: { total_credits: 1.234568, total_usage: 0 },
    });
    expect(response.headers.get("x-service-credits-balance")).toBe("1.234568");
    expect(response.headers.get("cache-control")).toBe("no-store");
  }
  expect(await (await gateway.get("/auth/key")).json()).toMatchObject({
    key: { is_free_tier: true, rate_limit: 600 },
  });
  expect(await (await gateway.get("/key")).json()).toMatchObject({ data: { is_free_tier: true } });
  await gateway.stop();
});
