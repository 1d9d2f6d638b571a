import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const headers = { authorization: `Bearer ${testManagementKey}` };
const create = (body: unknown): Promise<Response> => gateway.post("/keys", body, { headers });
const list = async (query = ""): Promise<unknown[]> =>
  listAt(await (await gateway.get(`/keys${query}`, headers)).json(), "data");

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What OpenRouter's clients require of a key's record, beside the fields of the contract. */
const openRouterFields = {
  usage: 0,
  usage_daily: 0,
  usage_weekly: 0,
  usage_monthly: 0,
  byok_usage: 0,
  byok_usage_daily: 0,
  byok_usage_weekly: 0,
  byok_usage_monthly: 0,
  workspace_id: expect.stringMatching(/^ws_/),
  external_user: null,
};

test("creating a key with only a name returns every documented field", async () => {
  const response = await create({ name: "plain" });
  expect(response.status).toBe(200);
  expect(response.headers.get("cache-control")).toBe("no-store");
  const created: unknown = await response.json();
  expect(Object.keys(Object(created))).toEqual(["key", "data"]);
  const secret = textAt(created, "key");
  expect(secret).toMatch(/^sk-svc-v1-[0-9A-Za-z]{40,}$/);
  expect(at(created, "data")).toEqual({
    id: expect.stringMatching(/^key_[0-9a-f]{32}$/),
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    name: "plain",
    label: `${secret.slice(0, 14)}...${secret.slice(-4)}`,
    created_at: expect.stringMatching(iso),
    updated_at: null,
    expires_at: null,
    disabled: false,
    real_usage: 0,
    real_usage_daily: 0,
    real_usage_weekly: 0,
    real_usage_monthly: 0,
    real_usage_monthly_requests: 0,
    ...openRouterFields,
    limit: null,
    limit_remaining: null,
    limit_reset: null,
    include_byok_in_limit: false,
    rate_limit: 2400,
    team_id: null,
    is_free_tier: false,
    is_management_key: false,
    creator_user_id: expect.any(String),
    last_used_at: null,
    allowed_models: null,
    allowed_endpoints: null,
    tpm: null,
    operator: false,
    scopes: ["inference"],
    run_limit: null,
    allowed_tools: null,
  });
});

test("every field that is sent is in the record", async () => {
  const sent = {
    name: "full",
    expires_at: "2030-01-31T00:00:00.000Z",
    limit: 12.5,
    limit_reset: "weekly",
    include_byok_in_limit: true,
    rate_limit: 30,
    disabled: true,
    allowed_models: ["acme/large"],
    allowed_endpoints: ["/api/v1/chat/completions"],
    tpm: 1000,
  };
  expect(at(await (await create(sent)).json(), "data")).toMatchObject({
    ...sent,
    limit_remaining: 12.5,
  });
});

test("null means the default for every nullable field", async () => {
  const nulls = {
    expires_at: null,
    limit: null,
    limit_reset: null,
    allowed_models: null,
    allowed_endpoints: null,
    tpm: null,
  };
  expect(at(await (await create({ name: "nulls", ...nulls })).json(), "data")).toMatchObject({
    ...nulls,
    limit_remaining: null,
  });
});

test.each([
  "2030-01-31T00:00:00Z",
  "2030-01-31T02:00:00+02:00",
  "2030-01-31T00:00:00.000000+00:00",
  "2030-01-31T00:00:00",
  "2030-01-31T00:00Z",
  "2030-01-31T05:30+05:30",
  "2030-01-31T00:00",
  "2030-01-31",
])("an expiry is converted to UTC: %s", async (expiry) => {
  expect(
    at(await (await create({ name: "zone", expires_at: expiry })).json(), "data.expires_at"),
  ).toBe("2030-01-31T00:00:00.000Z");
});

describe("invalid fields return 400 that names the field", () => {
  test.each([
    [{}, "name"],
    [{ name: "" }, "name"],
    [{ name: "   " }, "name"],
    [{ name: null }, "name"],
    [{ name: 7 }, "name"],
    [{ name: "n".repeat(201) }, "name"],
    [{ name: "n\u0000" }, "name"],
    [{ name: "half \ud800 a character" }, "name"],
    [{ expires_at: "tomorrow" }, "expires_at"],
    [{ expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
    [{ expires_at: "0000-01-01T00:00:00Z" }, "expires_at"],
    [{ expires_at: "2030-13-01T00:00:00Z" }, "expires_at"],
    [{ expires_at: "2030-02-30" }, "expires_at"],
    [{ expires_at: "2030-01-31 00:00:00" }, "expires_at"],
    [{ expires_at: 1893456000 }, "expires_at"],
    [{ limit: -1 }, "limit"],
    [{ limit: "10" }, "limit"],
    [{ limit: 1e12 }, "limit"],
    [{ limit_reset: "yearly" }, "limit_reset"],
    [{ limit_reset: "" }, "limit_reset"],
    [{ include_byok_in_limit: "yes" }, "include_byok_in_limit"],
    [{ disabled: 1 }, "disabled"],
    [{ rate_limit: 0 }, "rate_limit"],
    [{ rate_limit: -5 }, "rate_limit"],
    [{ rate_limit: 1.5 }, "rate_limit"],
    [{ rate_limit: "60" }, "rate_limit"],
    [{ allowed_models: "acme/large" }, "allowed_models"],
    [{ allowed_models: [7] }, "allowed_models[0]"],
    [{ allowed_models: ["a", ""] }, "allowed_models[1]"],
    [{ allowed_endpoints: "/x" }, "allowed_endpoints"],
    [{ allowed_endpoints: [null] }, "allowed_endpoints[0]"],
    [{ tpm: 0 }, "tpm"],
    [{ tpm: "many" }, "tpm"],
  ])("%j", async (fields, param) => {
    const before = (await list("?include_disabled=true")).length;
    const named =
      "name" in fields || Object.keys(fields).length === 0 ? fields : { name: "x", ...fields };
    const error = await errorOf(await create(named));
    expect(error).toMatchObject({
      status: 400,
      code: "bad_request",
      type: "invalid_request_error",
      param,
    });
    expect(error.message).toStartWith(`${param}: `);
    expect((await list("?include_disabled=true")).length).toBe(before);
  });
});

test("a limit below one nano-dollar is stored as 0, not as no limit", async () => {
  for (const limit of [1e-10, 1e-100, Number.MIN_VALUE]) {
    expect(await (await create({ name: "tiny", limit })).json()).toMatchObject({
      data: { limit: 0, limit_remaining: 0 },
    });
  }
});

describe("the list of keys", () => {
  test.each(["1", "TRUE", "yes", ""])("include_disabled=%s returns 400", async (text) => {
    expect(
      await errorOf(await gateway.get(`/keys?include_disabled=${text}`, headers)),
    ).toMatchObject({ status: 400, code: "bad_request", param: "include_disabled" });
  });

  test("is newest first, has disabled keys only on request and never a secret", async () => {
    const secrets: string[] = [];
    for (const body of [{ name: "list 1" }, { name: "list 2", disabled: true }, { name: "list 3" }])
      secrets.push(textAt(await (await create(body)).json(), "key"));
    const names = async (query: string): Promise<unknown[]> =>
      (await list(query))
        .map((key) => at(key, "name"))
        .filter((name) => String(name).startsWith("list"));
    expect(await names("")).toEqual(["list 3", "list 1"]);
    expect(await names("?include_disabled=false")).toEqual(["list 3", "list 1"]);
    expect(await names("?include_disabled=true")).toEqual(["list 3", "list 2", "list 1"]);
    const text = await (await gateway.get("/keys?include_disabled=true", headers)).text();
    for (const secret of secrets) expect(text).not.toContain(secret);
    expect(JSON.parse(text)).toMatchObject({ object: "list" });
  });

  test("has the same record as the response to the creation", async () => {
    const created = at(await (await create({ name: "same", limit: 1 })).json(), "data");
    expect((await list()).find((key) => at(key, "name") === "same")).toEqual(created);
  });
});
