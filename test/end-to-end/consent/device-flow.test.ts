import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TestGateway } from "../../support/gateway.ts";
import { acme } from "../../support/gateway.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, textAt } from "../api/at.ts";
import { chatRequest } from "../api/chat-request.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import { engines } from "../api/two-workspaces.ts";
import { formWith } from "./page-form.ts";

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

describe.each(engines)("the device flow, on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let people: PeopledGateway;
  const clock = new FakeClock();
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    people = await startPeopled(
      await freshUrl(),
      { providers: [acme(upstream.baseUrl)] },
      { clock },
    );
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    upstream.stop();
  });

  const gateway = (): TestGateway => people.gateway();
  const post = (path: string, fields: Record<string, string>, asJson = false): Promise<Response> =>
    fetch(gateway().baseUrl + path, {
      method: "POST",
      ...(asJson
        ? { body: JSON.stringify(fields), headers: { "content-type": "application/json" } }
        : { body: new URLSearchParams(fields) }),
    });
  const start = async (
    fields: Record<string, string> = {},
  ): Promise<{ deviceCode: string; userCode: string }> => {
    const answer: unknown = await (await post("/oauth/device/code", fields)).json();
    return { deviceCode: textAt(answer, "device_code"), userCode: textAt(answer, "user_code") };
  };
  const poll = (deviceCode: string): Promise<Response> =>
    post("/oauth/token", { grant_type: deviceGrant, device_code: deviceCode });
  const errorOf = async (response: Response): Promise<[number, string]> => [
    response.status,
    textAt(await response.json(), "error"),
  ];
  const decide = async (
    userCode: string,
    changes: Record<string, string | readonly string[] | null> = {},
  ): Promise<Response> => {
    const shown = await people.owner.ask(
      "POST",
      "/device",
      new URLSearchParams({ user_code: userCode }),
    );
    const page = await shown.text();
    if (shown.status !== 200) return new Response(page, { status: shown.status });
    return people.owner.ask("POST", "/device", formWith(page, { decision: "approve", ...changes }));
  };
  const connected = async (
    fields: Record<string, string> = {},
    changes: Record<string, string | readonly string[] | null> = {},
  ) => {
    // Lists are ordered by time.
    clock.advance(1);
    const { deviceCode, userCode } = await start(fields);
    const decided = await decide(userCode, changes);
    expect(decided.status).toBe(200);
    const response = await poll(deviceCode);
    const tokens: unknown = await response.json();
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    return { tokens, accessToken: textAt(tokens, "access_token"), deviceCode };
  };
  const asked = (secret: string, method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(gateway().baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${secret}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  test.each([false, true])("returns documented codes (JSON: %p)", async (asJson) => {
    const response = await post(
      "/oauth/device/code",
      { client_name: "My CLI", scope: "inference read:credits unheard:of" },
      asJson,
    );
    const answer: unknown = await response.json();
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(textAt(answer, "user_code")).toMatch(
      /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/,
    );
    expect(textAt(answer, "verification_uri")).toBe("http://127.0.0.1/device");
    expect(textAt(answer, "verification_uri_complete")).toBe(
      `http://127.0.0.1/device?user_code=${textAt(answer, "user_code")}`,
    );
    expect(at(answer, "expires_in")).toBe(900);
    expect(at(answer, "interval")).toBe(5);
  });

  test("gives a token that works only within the approved scopes", async () => {
    const { tokens, accessToken } = await connected({
      client_name: "My CLI",
      scope: "inference read:credits",
    });
    expect(accessToken).toMatch(/^sk-svc-at-/);
    expect(tokens).toMatchObject({ token_type: "Bearer", scope: "read:credits inference" });
    expect(textAt(tokens, "user_id")).toMatch(/^usr_/);
    expect(Object.keys(Object(tokens))).not.toContain("refresh_token");
    expect((await asked(accessToken, "POST", "/chat/completions", chatRequest())).status).toBe(200);
    expect((await asked(accessToken, "GET", "/credits")).status).toBe(200);
    expect((await asked(accessToken, "GET", "/key")).status).toBe(200);
    expect((await asked(accessToken, "GET", "/auth/key")).status).toBe(200);
    for (const [method, path] of [
      ["GET", "/keys"],
      ["POST", "/keys"],
      ["GET", "/security/ip-allowlist"],
      ["POST", "/key/children"],
      ["POST", "/auth/keys/code"],
      ["GET", "/session"],
      ["GET", "/admin/users"],
    ] as const) {
      expect([
        path,
        (await asked(accessToken, method, path, method === "POST" ? {} : undefined)).status,
      ]).toEqual([path, 403]);
    }
  });

  test("lets a person remove scopes and lower limits, and the key has the reduced ones", async () => {
    const { accessToken, tokens } = await connected(
      { scope: "inference read:credits", key_label: "laptop" },
      {
        scope: ["read:credits"],
        limit: "0.5",
        limit_reset: "daily",
        expiry: "7",
        models: "acme/large, acme/other",
      },
    );
    expect(textAt(tokens, "scope")).toBe("read:credits");
    expect((await asked(accessToken, "POST", "/chat/completions", chatRequest())).status).toBe(403);
    expect(at(await (await asked(accessToken, "GET", "/key")).json(), "data")).toMatchObject({
      limit: 0.5,
    });
    const [connection] = Object(await people.owner.json("GET", "/connections")).data;
    expect(connection).toMatchObject({
      object: "connection",
      client: { id: null, name: "An unnamed app" },
      origin: "device",
      scopes: ["read:credits"],
      limit: 0.5,
      limit_reset: "daily",
      limit_remaining: 0.5,
      allowed_models: ["acme/large", "acme/other"],
    });
    expect(Date.parse(connection.expires_at) - clock.nowMs()).toBeLessThanOrEqual(7 * 86_400_000);
  });

  test("distinguishes pending, slow_down, declined, expired and used codes", async () => {
    const { deviceCode, userCode } = await start();
    expect(await errorOf(await poll(deviceCode))).toEqual([400, "authorization_pending"]);
    expect(await errorOf(await poll(deviceCode))).toEqual([400, "slow_down"]);
    clock.advance(6_000);
    expect(await errorOf(await poll(deviceCode))).toEqual([400, "slow_down"]);
    clock.advance(16_000);
    expect(await errorOf(await poll(deviceCode))).toEqual([400, "authorization_pending"]);
    expect((await decide(userCode, { decision: "decline" })).status).toBe(200);
    expect(await errorOf(await poll(deviceCode))).toEqual([400, "access_denied"]);
    const late = await start();
    clock.advance(901_000);
    expect(await errorOf(await poll(late.deviceCode))).toEqual([400, "expired_token"]);
    expect((await decide(late.userCode)).status).toBe(404);
    const { deviceCode: used } = await connected();
    expect(await errorOf(await poll(used))).toEqual([400, "expired_token"]);
    expect(await errorOf(await poll("unheard-of"))).toEqual([400, "expired_token"]);
  });

  test("gives the token to one of a hundred parallel polls", async () => {
    const { deviceCode, userCode } = await start();
    await decide(userCode);
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => (await poll(deviceCode)).status),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  });

  test("registers a client of only the device flow without a redirect URI", async () => {
    const register = (metadata: Record<string, unknown>): Promise<Response> =>
      fetch(`${gateway().baseUrl}/mcp/oauth/register`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ client_name: "A television", ...metadata }),
      });
    const registered = await register({ grant_types: [deviceGrant] });
    const client: unknown = await registered.json();
    expect([registered.status, client]).toMatchObject([
      201,
      {
        client_name: "A television",
        redirect_uris: [],
        grant_types: [deviceGrant],
        response_types: [],
      },
    ]);
    const clientId = textAt(client, "client_id");
    const { userCode } = await start({ client_id: clientId, client_name: "Another name" });
    const shown = await people.owner.ask(
      "POST",
      "/device",
      new URLSearchParams({ user_code: userCode }),
    );
    expect(await shown.text()).toContain("Connect A television");
    const query = new URLSearchParams({ client_id: clientId, response_type: "code" });
    const authorize = `${new URL(gateway().baseUrl).pathname}/mcp/oauth/authorize?${query}`;
    expect((await people.owner.ask("GET", authorize)).status).toBe(400);
    for (const metadata of [{}, { grant_types: [deviceGrant, "authorization_code"] }])
      expect(await errorOf(await register(metadata))).toEqual([400, "invalid_client_metadata"]);
  });

  const nobody = { client_id: "client_nobody" };
  test.each<[string, string, Record<string, string>, string]>([
    ["an unknown client", "/oauth/device/code", nobody, "invalid_client"],
    ["no known scope", "/oauth/device/code", { scope: "unheard:of" }, "invalid_scope"],
    ...[
      { grant_type: deviceGrant, device_code: "unheard-of" },
      { grant_type: "authorization_code", code: "unheard-of", code_verifier: "v".repeat(43) },
      { grant_type: "refresh_token", refresh_token: "unheard-of" },
    ].flatMap((grant) =>
      ["/oauth/token", "/mcp/oauth/token"].map(
        (path) =>
          [
            `${grant.grant_type} of an unknown client`,
            path,
            { ...grant, ...nobody },
            "invalid_client",
          ] satisfies [string, string, Record<string, string>, string],
      ),
    ),
  ])("%s at %s returns a flat OAuth error", async (_name, path, fields, code) => {
    expect(await errorOf(await post(path, fields))).toEqual([400, code]);
  });

  test.each(["[]", '"inference"', "5", "{"])(
    "the JSON body %s returns a flat OAuth error",
    async (body) => {
      const headers = { "content-type": "application/json" };
      const url = `${gateway().baseUrl}/oauth/device/code`;
      const answer = await fetch(url, { method: "POST", headers, body });
      expect(await errorOf(answer)).toEqual([400, "invalid_request"]);
    },
  );

  test("an unknown grant type and a grant without its code return a flat OAuth error", async () => {
    expect(await errorOf(await post("/oauth/token", { grant_type: "password" }))).toEqual([
      400,
      "unsupported_grant_type",
    ]);
    expect(await errorOf(await post("/oauth/token", {}))).toEqual([400, "invalid_request"]);
    expect(await errorOf(await post("/oauth/token", { grant_type: deviceGrant }))).toEqual([
      400,
      "invalid_request",
    ]);
  });

  test("a coding agent with only its surface gets refreshable tokens", async () => {
    const response = await post("/oauth/device/code", { surface: "claude_code" });
    const answer: unknown = await response.json();
    expect(response.status).toBe(200);
    await decide(textAt(answer, "user_code"));
    const first: unknown = await (await poll(textAt(answer, "device_code"))).json();
    expect(first).toMatchObject({ scope: "inference", expires_in: 3_600 });
    const refresh = (token: string): Promise<Response> =>
      post("/oauth/token", { grant_type: "refresh_token", refresh_token: token });
    const second: unknown = await (await refresh(textAt(first, "refresh_token"))).json();
    expect((await asked(textAt(first, "access_token"), "GET", "/auth/key")).status).toBe(401);
    expect((await asked(textAt(second, "access_token"), "GET", "/auth/key")).status).toBe(200);
    clock.advance(3_601_000);
    expect((await asked(textAt(second, "access_token"), "GET", "/auth/key")).status).toBe(401);
    const third: unknown = await (await refresh(textAt(second, "refresh_token"))).json();
    // Used twice: one of the two holders stole it, so the connection ends.
    const reused = await refresh(textAt(second, "refresh_token"));
    expect(await errorOf(reused)).toEqual([401, "invalid_grant"]);
    expect(reused.headers.get("www-authenticate")).toBeNull();
    expect((await asked(textAt(third, "access_token"), "GET", "/auth/key")).status).toBe(401);
    expect(await errorOf(await refresh(textAt(third, "refresh_token")))).toEqual([
      401,
      "invalid_grant",
    ]);
  });

  test("revoking a token ends its connection", async () => {
    for (const name of ["access_token", "refresh_token"]) {
      const { tokens, accessToken } = await connected({ scope: "inference offline_access" });
      expect((await post("/oauth/revoke", { token: textAt(tokens, name) })).status).toBe(200);
      expect((await asked(accessToken, "GET", "/auth/key")).status).toBe(401);
    }
    expect((await post("/oauth/revoke", { token: "unheard-of" })).status).toBe(200);
  });

  test("a connected app is listed, shown and disconnected", async () => {
    const { accessToken } = await connected({ client_name: "Listed" });
    const [connection] = Object(await people.owner.json("GET", "/connections")).data;
    expect(connection.client.name).toBe("Listed");
    expect(await people.owner.json("GET", `/connections/${connection.id}`)).toMatchObject({
      id: connection.id,
    });
    expect(Object(await people.owner.json("GET", "/admin/connections")).data[0].id).toBe(
      connection.id,
    );
    const keys = Object(await people.owner.json("GET", "/keys")).data.map(
      ({ id }: { id: string }) => id,
    );
    expect(keys).not.toContain(connection.key_id);
    expect(await people.owner.json("DELETE", `/connections/${connection.id}`)).toEqual({
      deleted: true,
      id: connection.id,
    });
    expect((await asked(accessToken, "GET", "/auth/key")).status).toBe(401);
    expect((await people.owner.api("GET", `/connections/${connection.id}`)).status).toBe(404);
    expect((await people.owner.api("DELETE", `/connections/${connection.id}`)).status).toBe(404);
    const other = await connected({ client_name: "Ended by the operator" });
    const [second] = Object(await people.owner.json("GET", "/admin/connections")).data;
    await people.owner.json("DELETE", `/admin/connections/${second.id}`);
    expect((await asked(other.accessToken, "GET", "/auth/key")).status).toBe(401);
  });

  test("a link alone does not approve, and a decision needs a session and the same origin", async () => {
    const { userCode } = await start();
    const shown = await people.owner.ask("GET", `/device?user_code=${userCode}`);
    expect(await shown.text()).not.toContain("Approve");
    const stranger = people.stranger();
    expect(await (await stranger.ask("GET", `/device?user_code=${userCode}`)).text()).toContain(
      userCode,
    );
    const sent = await stranger.ask(
      "POST",
      "/device",
      new URLSearchParams({ user_code: userCode }),
    );
    expect([sent.status, sent.headers.get("location")]).toEqual([
      303,
      `/sign-in?return_to=${encodeURIComponent(`/device?user_code=${userCode}`)}`,
    ]);
    const foreign = await people.owner.ask(
      "POST",
      "/device",
      new URLSearchParams({ user_code: userCode }),
    );
    expect(foreign.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    people.owner.origin = "https://evil.example";
    expect(
      (
        await people.owner.ask(
          "POST",
          "/device",
          new URLSearchParams({ user_code: userCode, decision: "approve" }),
        )
      ).status,
    ).toBe(403);
    people.owner.origin = "http://127.0.0.1";
  });

  test("an address can have at most sixty pending codes", async () => {
    clock.advance(901_000);
    for (let made = 0; made < 60; made += 1) await start();
    expect(await errorOf(await post("/oauth/device/code", {}))).toEqual([
      429,
      "temporarily_unavailable",
    ]);
    clock.advance(901_000);
    await start();
  });
});
