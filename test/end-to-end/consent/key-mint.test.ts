import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, testLlmKey } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, textAt } from "../api/at.ts";
import { chatRequest } from "../api/chat-request.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";

const verifier = "verifier-of-an-app-that-proves-who-asked-0123456789";
const challenge = createHash("sha256").update(verifier).digest("base64url");

describe.each(engines)("minting a key with PKCE, on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, { providers: [acme(upstream.baseUrl)] });
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const codeWith = (secret: string, body: Record<string, unknown> = {}): Promise<Response> =>
    workspaces.as(secret)("POST", "/auth/keys/code", {
      callback_url: "https://app.example/cb",
      code_challenge: challenge,
      ...body,
    });
  const code = async (body: Record<string, unknown> = {}, secret = testLlmKey): Promise<string> => {
    const response = await codeWith(secret, body);
    const answer: unknown = await response.json();
    if (response.status !== 200) throw new Error(JSON.stringify(answer));
    return textAt(answer, "data.id");
  };
  const exchange = (body: Record<string, unknown>): Promise<Response> =>
    fetch(`${workspaces.gateway().baseUrl}/auth/keys`, {
      method: "POST",
      body: JSON.stringify({ code_verifier: verifier, ...body }),
    });
  const keyOf = async (response: Response): Promise<string> => textAt(await response.json(), "key");
  const parentKey = async (
    fields: Record<string, unknown> = {},
  ): Promise<{ secret: string; hash: string }> => {
    const answer: unknown = await (
      await workspaces.own("POST", "/keys", { name: "parent", ...fields })
    ).json();
    return { secret: textAt(answer, "key"), hash: textAt(answer, "data.hash") };
  };
  const chat = async (secret: string): Promise<number> => {
    const response = await workspaces.as(secret)("POST", "/chat/completions", chatRequest());
    await response.text();
    return response.status;
  };

  test("exchanges a code once for a working key", async () => {
    const response = await codeWith(testLlmKey);
    const answer: unknown = await response.json();
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(at(answer, "data.app_id")).toBeNumber();
    expect(Math.abs(Date.parse(textAt(answer, "data.created_at")) - Date.now())).toBeLessThan(
      60_000,
    );
    const first = await exchange({ code: textAt(answer, "data.id") });
    expect([first.status, first.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const made: unknown = await first.json();
    expect(textAt(made, "key")).toMatch(/^sk-svc-v1-[0-9A-Za-z]{40,}$/);
    expect(textAt(made, "user_id")).not.toBe("");
    expect(await chat(textAt(made, "key"))).toBe(200);
    const second = await exchange({ code: textAt(answer, "data.id") });
    expect([second.status, textAt(await second.json(), "error.code")]).toEqual([
      400,
      "bad_request",
    ]);
  });

  test("makes one key in a hundred parallel exchanges", async () => {
    const one = await code();
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => (await exchange({ code: one })).status),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(new Set(statuses)).toEqual(new Set([200, 400]));
  });

  test("makes a child key with the requested limits, within its parent's and deleted with it", async () => {
    const parent = await parentKey({
      limit: 5,
      limit_reset: "weekly",
      allowed_models: ["acme/large"],
      expires_at: "2031-01-31T00:00:00Z",
    });
    const wide = await codeWith(parent.secret, { limit: 6 });
    expect([wide.status, textAt(await wide.json(), "error.param")]).toEqual([400, "limit"]);
    const late = await codeWith(parent.secret, { expires_at: "2032-01-01T00:00:00Z" });
    expect([late.status, textAt(await late.json(), "error.param")]).toEqual([400, "expires_at"]);
    const asked = {
      limit: 2,
      usage_limit_type: "daily",
      expires_at: "2030-01-01T00:00:00Z",
      key_label: "my agent",
    };
    const secret = await keyOf(await exchange({ code: await code(asked, parent.secret) }));
    const shown: unknown = await (await workspaces.as(secret)("GET", "/key")).json();
    expect(at(shown, "data")).toMatchObject({ limit: 2, limit_remaining: 2 });
    expect(await chat(secret)).toBe(200);
    await workspaces.own("DELETE", `/keys/${parent.hash}`);
    expect(await chat(secret)).toBe(401);
  });

  test("applies the parent's limits at the time of the exchange", async () => {
    const parent = await parentKey({ limit: 5 });
    const waiting = await code({ limit: 4 }, parent.secret);
    await workspaces.own("PATCH", `/keys/${parent.hash}`, { limit: 1 });
    const secret = await keyOf(await exchange({ code: waiting }));
    expect(at(await (await workspaces.as(secret)("GET", "/key")).json(), "data.limit")).toBe(1);
    const orphan = await code({}, parent.secret);
    await workspaces.own("DELETE", `/keys/${parent.hash}`);
    expect((await exchange({ code: orphan })).status).toBe(400);
  });

  test("refuses a key that another key made", async () => {
    const child = await keyOf(await exchange({ code: await code() }));
    expect((await codeWith(child)).status).toBe(403);
  });

  const otherVerifier = "another-verifier-that-belongs-to-somebody-else-0123";
  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ["another verifier", {}, { code_verifier: otherVerifier }],
    ["the challenge in place of the verifier", {}, { code_verifier: challenge }],
    ["another method", {}, { code_challenge_method: "plain" }],
    [
      "plain exchanged as S256",
      { code_challenge: verifier, code_challenge_method: "plain" },
      { code_challenge_method: "S256" },
    ],
    ["a short verifier", {}, { code_verifier: "x".repeat(42) }],
    ["a long verifier", {}, { code_verifier: "x".repeat(129) }],
    ["an unknown code", {}, { code: "nothing" }],
    ["no code", {}, { code: undefined }],
  ])("%s is refused and does not use up the code", async (_name, asked, presented) => {
    const one = await code(asked);
    expect((await exchange({ code: one, ...presented })).status).toBe(400);
    expect((await exchange({ code: one })).status).toBe(200);
  });

  test("accepts plain when it was requested, with and without the method", async () => {
    const plain = { code_challenge: verifier, code_challenge_method: "plain" };
    expect(
      (await exchange({ code: await code(plain), code_challenge_method: "plain" })).status,
    ).toBe(200);
    expect((await exchange({ code: await code(plain) })).status).toBe(200);
  });

  test.each<[string, boolean]>([
    ["https://app.example/cb", true],
    ["https://app.example:8443/cb?x=1", true],
    ["http://localhost:3000/cb", true],
    ["http://127.0.0.1:9/cb", true],
    ["http://[::1]:3000/", true],
    ["http://app.example/cb", false],
    ["http://localhost.evil.example/cb", false],
    ["http://127.0.0.2/cb", false],
    ["https://user:pass@app.example/", false],
    ["https://app.example/#x", false],
    ["https://app.example/#", false],
    ["javascript:alert(1)", false],
    ["cursor://callback", false],
    ["/cb", false],
    ["", false],
    ["https://app.example\\@evil.example/", false],
    [" https://app.example/", false],
  ])("callback_url %p is accepted: %p", async (callbackUrl, taken) => {
    const response = await codeWith(testLlmKey, { callback_url: callbackUrl });
    const answer: unknown = await response.json();
    expect(response.status).toBe(taken ? 200 : 400);
    if (!taken) expect(textAt(answer, "error.param")).toBe("callback_url");
  });

  test.each<[string, Record<string, unknown>]>([
    ["callback_url", { callback_url: undefined }],
    ["code_challenge", { code_challenge: undefined }],
    ["code_challenge", { code_challenge: "short" }],
    ["code_challenge_method", { code_challenge_method: "S512" }],
    ["limit", { limit: -1 }],
    ["usage_limit_type", { usage_limit_type: "yearly" }],
    ["expires_at", { expires_at: "2001-01-01T00:00:00Z" }],
    ["expires_at", { expires_at: "tomorrow" }],
  ])("an invalid %s is named in the error", async (param, body) => {
    const response = await codeWith(testLlmKey, body);
    expect([response.status, textAt(await response.json(), "error.param")]).toEqual([400, param]);
  });

  test("codes can only be created with LLM keys", async () => {
    expect((await codeWith("sk-svc-v1-unknown")).status).toBe(401);
    const body = { callback_url: "https://a.example/", code_challenge: challenge };
    expect((await workspaces.own("POST", "/auth/keys/code", body)).status).toBe(401);
  });

  test("a key can have at most a hundred pending codes", async () => {
    const parent = await parentKey();
    for (let made = 0; made < 100; made += 1)
      expect((await codeWith(parent.secret)).status).toBe(200);
    const refused = await codeWith(parent.secret);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
    expect((await codeWith(testLlmKey)).status).toBe(200);
  });
});
