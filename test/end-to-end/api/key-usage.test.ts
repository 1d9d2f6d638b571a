import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { seedStorage } from "./seed-storage.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const pricing = { prompt: "0.50", completion: "1.50" };
  gateway = await startGateway({
    providers: [
      acme(upstream.baseUrl, { models: [{ id: "acme/large", pricing }, { id: "acme/tiny:free" }] }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const management = { authorization: `Bearer ${testManagementKey}` };

interface MadeKey {
  id: string;
  hash: string;
  bearer: { authorization: string };
  label: string;
}

async function makeKey(fields: Record<string, unknown> = {}): Promise<MadeKey> {
  const created: unknown = await (
    await gateway.post("/keys", { name: "k", ...fields }, { headers: management })
  ).json();
  return {
    id: textAt(created, "data.id"),
    hash: textAt(created, "data.hash"),
    label: textAt(created, "data.label"),
    bearer: { authorization: `Bearer ${textAt(created, "key")}` },
  };
}

const chat = (key: MadeKey, fields: Record<string, unknown> = {}): Promise<Response> =>
  gateway.post("/chat/completions", chatRequest(fields), { headers: key.bearer });
const recordOf = async ({ id }: MadeKey): Promise<unknown> =>
  listAt(await (await gateway.get("/keys?include_disabled=true", management)).json(), "data").find(
    (key) => at(key, "id") === id,
  );

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const chargeUsd = 0.000016;
/**
 * A limit for one request and not for a second: with 7 tokens of output it may cost 0.000021, since its
 * input is estimated at 21 tokens.
 */
const oneUsd = 0.000025;

describe("usage of a key", () => {
  test("grows with each request immediately, in every endpoint", async () => {
    const key = await makeKey({ limit: 1 });
    const before = Date.now();
    for (const stream of [false, true]) await (await chat(key, { stream })).text();
    const used = 2 * chargeUsd;
    const record = await recordOf(key);
    expect(record).toMatchObject({
      real_usage: used,
      real_usage_daily: used,
      real_usage_weekly: used,
      real_usage_monthly: used,
      real_usage_monthly_requests: 2,
      limit: 1,
      limit_remaining: 1 - used,
    });
    expect(Date.parse(textAt(record, "last_used_at"))).toBeGreaterThanOrEqual(before);
    expect(await (await gateway.get("/auth/key", key.bearer)).json()).toMatchObject({
      key: { usage: used, limit: 1 },
    });
    expect(await (await gateway.get("/key", key.bearer)).json()).toMatchObject({
      data: { usage: used, limit: 1, limit_remaining: 1 - used },
    });
  });

  test("counts free requests as requests at no cost", async () => {
    const key = await makeKey();
    for (let count = 0; count < 3; count += 1) {
      await (await chat(key, { model: "acme/tiny:free" })).text();
      expect(await recordOf(key)).toMatchObject({
        real_usage: 0,
        real_usage_monthly_requests: count + 1,
        last_used_at: expect.any(String),
      });
    }
  });
});

describe("a key's limit", () => {
  test.each(["daily", "weekly", "monthly", null])(
    "with reset %p refuses paid models once it is spent, and never free ones",
    async (limitReset) => {
      const key = await makeKey({ limit: oneUsd, limit_reset: limitReset });
      expect((await chat(key, { max_tokens: 7 })).status).toBe(200);
      expect(await recordOf(key)).toMatchObject({
        limit: oneUsd,
        limit_remaining: 0.000009,
        limit_reset: limitReset,
      });
      const error = await errorOf(await chat(key));
      expect(error).toMatchObject({ status: 402, code: "insufficient_balance", type: "payment" });
      expect(error.metadata).toMatchObject({ reason: "key_limit_reached" });
      expect((await chat(key, { model: "acme/tiny:free" })).status).toBe(200);
    },
  );

  test("of 0 allows only free models", async () => {
    const key = await makeKey({ limit: 0 });
    expect((await chat(key)).status).toBe(402);
    expect((await chat(key, { model: "acme/tiny:free" })).status).toBe(200);
  });
});

/** Of an expiry that has passed no key is made, but one may be ended with it. */
async function change({ hash }: MadeKey, fields: object): Promise<void> {
  const answer = await fetch(`${gateway.baseUrl}/keys/${hash}`, {
    method: "PATCH",
    headers: management,
    body: JSON.stringify(fields),
  });
  expect(answer.status).toBe(200);
}

test.each([[{ disabled: true }], [{ expires_at: "2020-01-01T00:00:00Z" }]])(
  "a key changed to %j is refused everywhere",
  async (fields) => {
    const key = await makeKey();
    await change(key, fields);
    for (const response of [
      await chat(key),
      await gateway.get("/credits", key.bearer),
      await gateway.get("/models", key.bearer),
    ])
      expect(await errorOf(response)).toMatchObject({
        status: 401,
        code: "invalid_api_key",
        type: "authentication_error",
      });
  },
);

describe("a key's own record", () => {
  test("GET /auth/key returns exactly the compact record", async () => {
    const key = await makeKey({ name: "compact", rate_limit: 30 });
    expect(await (await gateway.get("/auth/key", key.bearer)).json()).toEqual({
      key: {
        prefix: key.label,
        name: "compact",
        created_at: expect.stringMatching(/^\d{4}-.*Z$/),
        rate_limit: 30,
        usage: 0,
        limit: null,
        is_free_tier: false,
      },
    });
  });

  test("GET /key returns exactly OpenRouter's record", async () => {
    const key = await makeKey({ limit: 2, limit_reset: "weekly" });
    const { creator_user_id: creator } = (await recordOf(key)) as { creator_user_id: string };
    const limit = {
      scope: "key_limit",
      budget_id: null,
      guardrail_id: null,
      limit_usd: 2,
      spend_usd: 0,
      remaining_usd: 2,
      include_byok: false,
      reset_interval: "weekly",
      resets_at: null,
    };
    expect(await (await gateway.get("/key", key.bearer)).json()).toEqual({
      data: {
        budgets: [limit],
        effective_budget: limit,
        label: key.label,
        limit: 2,
        limit_remaining: 2,
        limit_reset: "weekly",
        include_byok_in_limit: false,
        usage: 0,
        usage_daily: 0,
        usage_weekly: 0,
        usage_monthly: 0,
        byok_usage: 0,
        byok_usage_daily: 0,
        byok_usage_weekly: 0,
        byok_usage_monthly: 0,
        is_free_tier: false,
        is_management_key: false,
        is_provisioning_key: false,
        operator: false,
        creator_user_id: creator,
        workspace_id: expect.stringMatching(/^ws_/),
        organization_id: null,
        expires_at: null,
        allowed_data_regions: ["global"],
        free_model_daily_requests: {
          limit: 2400 * 24 * 60,
          used: expect.any(Number),
          remaining: expect.any(Number),
        },
        rate_limit: { requests: 2400, interval: "60s", note: expect.any(String) },
      },
    });
  });

  test("a rate limit above the plan's is shown as the plan's, which applies", async () => {
    const key = await makeKey({ rate_limit: 1_000_000 });
    expect(await (await gateway.get("/auth/key", key.bearer)).json()).toMatchObject({
      key: { rate_limit: 2400 },
    });
    expect(await (await gateway.get("/key", key.bearer)).json()).toMatchObject({
      data: { rate_limit: { requests: 2400 } },
    });
    expect(await recordOf(key)).toMatchObject({ rate_limit: 1_000_000 });
  });

  test("GET /key with a management key returns the newest active LLM key", async () => {
    const newest = await makeKey({ name: "newest" });
    await makeKey({ disabled: true });
    await change(await makeKey(), { expires_at: "2020-01-01T00:00:00Z" });
    expect(await (await gateway.get("/key", management)).json()).toMatchObject({
      data: { label: newest.label },
    });
  });

  test("GET /key with a management key returns 404 in a workspace without active keys", async () => {
    const secret = "ak_live_lonelylonelylonelylonelylonelylonely";
    const storage = await seedStorage({
      workspaces: [{ id: "ws_first" }, { id: "ws_lonely", plan: "free" }],
      managementKeys: [{ secret, workspaceId: "ws_lonely" }],
    });
    const lonely = await startGateway(storage.settings);
    const answer = await fetch(`${lonely.baseUrl}/key`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    expect(await errorOf(answer)).toMatchObject({ status: 404, code: "not_found" });
    expect(
      await (
        await fetch(`${lonely.baseUrl}/keys`, { headers: { authorization: `Bearer ${secret}` } })
      ).json(),
    ).toEqual({ object: "list", data: [] });
    await lonely.stop();
    storage.remove();
  });
});
