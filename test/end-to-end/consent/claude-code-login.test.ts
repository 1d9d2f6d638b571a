import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { capHeaders } from "../../../src/endpoints/inference/spend-cap.ts";
import {
  startScriptedUpstream,
  type ScriptedUpstream,
} from "../../support/scripted-upstream/scripted-upstream.ts";
import { provider } from "../../support/gateway.ts";
import { at, textAt } from "../api/at.ts";
import { startPeopled, type PeopledGateway } from "../api/people-browser.ts";
import { decideDevice, type Decided } from "./flows.ts";

const managedSettings = { permissions: { deny: ["WebFetch"] }, env: { B: "2", A: "1" } };

/**
 * The calls of Claude Code 2.1.329 while it signs in to a gateway, path by path, as its program
 * makes them.
 */
describe("Claude Code signs in to the gateway", () => {
  let people: PeopledGateway;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    upstream = await startScriptedUpstream();
    const models = [
      {
        id: "scripted/model",
        context_length: 100_000,
        pricing: { prompt: "10000", completion: "10000" },
      },
    ];
    const providers = [
      provider({
        id: "scripted",
        dialect: "openai-chat",
        base_url: upstream.baseUrl,
        api_key: "secret",
        models,
      }),
    ];
    people = await startPeopled(undefined, {
      providers,
      claudeCode: { loginNotice: "Use is logged.", managedSettings },
    });
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    await upstream.stop();
  });

  const origin = (): string => people.gateway().origin;
  const form = (path: string, fields: Record<string, string>): Promise<Response> =>
    fetch(origin() + path, {
      method: "POST",
      redirect: "error",
      body: new URLSearchParams(fields).toString(),
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "user-agent": "claude-code/2.1.329",
      },
    });
  const get = (
    path: string,
    token: string,
    headers: Record<string, string> = {},
  ): Promise<Response> =>
    fetch(origin() + path, {
      redirect: "error",
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
  const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

  /** Signs in, with what the person changes in the form; gives the answer of the token endpoint. */
  async function signIn(decided: Decided = {}): Promise<unknown> {
    const started: unknown = await (
      await form("/oauth/device_authorization", { surface: "claude_code" })
    ).json();
    expect(started).toMatchObject({ login_notice: "Use is logged.", interval: 5, expires_in: 900 });
    const poll = { grant_type: deviceGrant, device_code: textAt(started, "device_code") };
    const pending = await form("/oauth/token", poll);
    expect([pending.status, await pending.json()]).toMatchObject([
      400,
      { error: "authorization_pending" },
    ]);
    expect((await decideDevice(people.owner, textAt(started, "user_code"), decided)).status).toBe(
      200,
    );
    return (await form("/oauth/token", poll)).json();
  }

  test("the metadata names the endpoints, and the fallback endpoints exist too", async () => {
    const found: unknown = await (
      await fetch(`${origin()}/.well-known/oauth-authorization-server`)
    ).json();
    for (const name of ["device_authorization_endpoint", "token_endpoint", "revocation_endpoint"]) {
      expect(new URL(textAt(found, name)).origin).toBe("http://127.0.0.1");
      const { pathname } = new URL(textAt(found, name));
      expect((await form(pathname, { surface: "claude_code" })).status).not.toBe(404);
    }
  });

  test("signs in with only its surface, refreshes, and gets 401 when it has to sign in again", async () => {
    const tokens = await signIn();
    expect(tokens).toMatchObject({
      token_type: "Bearer",
      expires_in: 3600,
      email: "owner@example.com",
    });
    const refresh = (token: string) =>
      form("/oauth/token", { grant_type: "refresh_token", refresh_token: token });
    const next: unknown = await (await refresh(textAt(tokens, "refresh_token"))).json();
    expect(next).toMatchObject({ token_type: "Bearer", expires_in: 3600 });
    expect(textAt(next, "refresh_token")).not.toBe(textAt(tokens, "refresh_token"));
    expect((await get("/v1/models?limit=1000", textAt(next, "access_token"))).status).toBe(200);
    const failed = await refresh("sk-svc-rt-unknown");
    expect([failed.status, await failed.json()]).toMatchObject([401, { error: "invalid_grant" }]);
  });

  test("signs out: both tokens are revoked, and the next request gets a 401 without retry", async () => {
    const tokens = await signIn();
    const token = textAt(tokens, "access_token");
    expect((await form("/api/v1/oauth/revoke", { token })).status).toBe(200);
    const more = { token: textAt(tokens, "refresh_token"), token_type_hint: "refresh_token" };
    expect((await form("/api/v1/oauth/revoke", more)).status).toBe(200);
    const refused = await get("/managed/settings", token);
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([401, "false"]);
    expect(await refused.json()).toMatchObject({
      type: "error",
      error: { type: "authentication_error" },
    });
  });

  test("receives the managed settings with the checksum that it computes", async () => {
    const token = textAt(await signIn(), "access_token");
    const answer = await get("/managed/settings", token);
    const sorted = '{"env":{"A":"1","B":"2"},"permissions":{"deny":["WebFetch"]}}';
    const checksum = `sha256:${createHash("sha256").update(sorted).digest("hex")}`;
    expect(await answer.json()).toEqual({
      uuid: expect.any(String),
      checksum,
      settings: managedSettings,
    });
    expect([answer.headers.get("etag"), answer.headers.get("cache-control")]).toEqual([
      `"${checksum}"`,
      "no-store",
    ]);
    expect(
      (await get("/managed/settings", token, { "if-none-match": `"${checksum}"` })).status,
    ).toBe(304);
    for (const signal of ["metrics", "logs", "traces"]) {
      const headers = {
        authorization: `Bearer ${token}`,
        "content-type": "application/x-protobuf",
      };
      const sent = await fetch(`${origin()}/v1/${signal}`, {
        method: "POST",
        headers,
        body: "\u0001",
      });
      expect(sent.status).toBe(200);
    }
  });

  const ask = (
    token: string,
    headers: Record<string, string> = { "x-claude-code-session-id": "s" },
  ): Promise<Response> =>
    fetch(`${origin()}/v1/messages?beta=true`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify({
        model: "scripted/model",
        max_tokens: 16,
        messages: [{ role: "user", content: "Hi" }],
      }),
    });
  const limitsIn = ({ headers }: Response): Record<string, string> =>
    Object.fromEntries(
      [...headers].flatMap(([key, value]) =>
        key.startsWith("anthropic-ratelimit-") ? [[key.slice(28), value]] : [],
      ),
    );

  test("receives its limit's usage, gets 429 at the limit and shows the same figures", async () => {
    const token = textAt(await signIn({ limit: "0.4", limit_reset: "daily" }), "access_token");
    upstream.say({ text: ["Hello."] });
    const first = await ask(token);
    expect(first.status).toBe(200);
    const told = limitsIn(first);
    expect(told).toMatchObject({
      status: "allowed",
      "representative-claim": "overage",
      "overage-status": "allowed",
      "overage-utilization": "0.00",
    });
    expect(told["overage-surpassed-threshold"]).toBeUndefined();
    const usage: unknown = await (await get("/api/oauth/usage", token)).json();
    expect(usage).toMatchObject({
      extra_usage: {
        is_enabled: true,
        monthly_limit: 40,
        used_credits: 18,
        utilization: 45,
        currency: "USD",
      },
      limits: [{ kind: "spend", group: "daily", percent: 45, is_active: true }],
    });
    expect(Date.parse(textAt(usage, "limits.0.resets_at")) / 1000).toBe(
      Number(told["overage-reset"]),
    );
    const refused = await ask(token);
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([429, "false"]);
    expect(await refused.json()).toMatchObject({
      type: "error",
      error: {
        type: "billing_error",
        message: expect.stringMatching(/^Spend limit reached, free again by \d{4}-/),
      },
    });
    const atCap = limitsIn(refused);
    expect(atCap).toMatchObject({
      status: "rejected",
      "overage-utilization": "1",
      "overage-period": "daily",
      "overage-disabled-reason": "org_spend_cap_reached",
    });
    expect([atCap["representative-claim"], atCap["overage-status"]]).toEqual([
      undefined,
      undefined,
    ]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(3600);
    expect((await ask(token, {})).status).toBe(402);
  });

  test("at a budget of another time zone is told when its period ends there", async () => {
    const token = textAt(await signIn({ limit: "" }), "access_token");
    const zone = "Asia/Kathmandu";
    const budget = {
      name: "b",
      period: "daily",
      time_zone: zone,
      action: "block",
      limit: 0.000001,
    };
    const made = await people.owner.json("POST", "/budgets", budget);
    const refused = await ask(token);
    await people.owner.json("DELETE", `/budgets/${textAt(made, "data.id")}`);
    expect(refused.status).toBe(429);
    const resetMs = Number(limitsIn(refused)["reset"]) * 1000;
    const clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeStyle: "short" });
    expect(clock.format(resetMs)).toBe("00:00");
  });

  test("without a limit receives no limit headers, and shows spending by month, week and day", async () => {
    const token = textAt(await signIn({ limit: "" }), "access_token");
    upstream.say({ text: ["Hello."] });
    expect(limitsIn(await ask(token))).toEqual({});
    const usage: unknown = await (await get("/api/oauth/usage", token)).json();
    expect(at(usage, "limits")).toEqual([]);
    expect(at(usage, "extra_usage")).toMatchObject({
      monthly_limit: null,
      utilization: null,
      daily: { limit: null, used_credits: 18 },
      weekly: { limit: null, used_credits: 18 },
    });
  });
});

test.each<[spent: bigint, utilization: string, status: string, surpassed: string | undefined]>([
  [0n, "0.00", "allowed", undefined],
  [749n, "0.74", "allowed", undefined],
  [750n, "0.75", "allowed_warning", "0.75"],
  [949n, "0.94", "allowed_warning", "0.75"],
  [950n, "0.95", "allowed_warning", "0.95"],
  [1200n, "0.99", "allowed_warning", "0.95"],
])("spending %p of 1000 is reported as %s, %s", (spentNano, utilization, status, surpassed) => {
  const headers = capHeaders({ period: "daily", limitNano: 1000n, spentNano, resetsAtMs: 60_000 });
  const name = (rest: string): string => `anthropic-ratelimit-unified-${rest}`;
  expect(headers[name("overage-utilization")]).toBe(utilization);
  expect([headers[name("status")], headers[name("overage-surpassed-threshold")]]).toEqual([
    status,
    surpassed,
  ]);
  expect(headers[name("reset")]).toBe("60");
});
