import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { at, textAt } from "../api/at.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import { allEngines } from "../api/two-workspaces.ts";
import { formWith } from "./page-form.ts";

const verifier = "verifier-of-a-client-of-oauth-that-proves-who-asked-01";
const challenge = createHash("sha256").update(verifier).digest("base64url");
const callback = "https://client.example/cb";
const authorizePath = "/api/v1/mcp/oauth/authorize";

type Changes = Record<string, string | readonly string[] | null>;

describe.each(allEngines)("connecting an app with OAuth, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  beforeAll(async () => {
    people = await startPeopled(await freshUrl());
  }, 240_000);
  afterAll(() => people.stop());

  const post = (path: string, body: Record<string, unknown>, json = false): Promise<Response> =>
    fetch(people.gateway().baseUrl + path, {
      method: "POST",
      body: json ? JSON.stringify(body) : new URLSearchParams(body as Record<string, string>),
    });
  const register = (body: Record<string, unknown> = {}): Promise<Response> =>
    post(
      "/mcp/oauth/register",
      { redirect_uris: [callback], client_name: "A client", ...body },
      true,
    );
  const clientId = async (body: Record<string, unknown> = {}): Promise<string> =>
    textAt(await (await register(body)).json(), "client_id");
  const query = (id: string, changes: Record<string, string | null> = {}): string => {
    const parameters = {
      client_id: id,
      redirect_uri: callback,
      response_type: "code",
      code_challenge: challenge,
      code_challenge_method: "S256",
      state: "the state",
      ...changes,
    };
    const set = Object.entries(parameters).filter(
      (entry): entry is [string, string] => entry[1] !== null,
    );
    return new URLSearchParams(set).toString();
  };
  const consented = async (
    id: string,
    { asked = {}, decided = {} }: { asked?: Record<string, string | null>; decided?: Changes } = {},
  ) => {
    const shown = await people.owner.ask("GET", `${authorizePath}?${query(id, asked)}`);
    const page = await shown.text();
    if (shown.status !== 200)
      throw new Error(`${shown.status} ${shown.headers.get("location")} ${page}`);
    const answer = await people.owner.ask(
      "POST",
      authorizePath,
      formWith(page, { decision: "approve", ...decided }),
    );
    expect(answer.status).toBe(303);
    return new URL(answer.headers.get("location") ?? "");
  };
  const exchange = (fields: Record<string, unknown>): Promise<Response> =>
    post("/mcp/oauth/token", {
      grant_type: "authorization_code",
      redirect_uri: callback,
      code_verifier: verifier,
      ...fields,
    });
  const connected = async (options: Parameters<typeof consented>[1] = {}) => {
    const id = await clientId();
    const code = (await consented(id, options)).searchParams.get("code") ?? "";
    const response = await exchange({ code, client_id: id });
    const tokens: unknown = await response.json();
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    return { id, code, tokens };
  };
  const bearer = (token: string, path: string): Promise<Response> =>
    fetch(people.gateway().baseUrl + path, { headers: { authorization: `Bearer ${token}` } });
  const errorOf = async (response: Response): Promise<[number, string]> => [
    response.status,
    textAt(await response.json(), "error"),
  ];

  test("the metadata names existing endpoints", async () => {
    for (const path of [
      "/oauth-authorization-server",
      "/oauth-authorization-server/mcp",
      "/openid-configuration",
    ]) {
      const answer: unknown = await (
        await fetch(`${people.gateway().origin}/.well-known${path}`)
      ).json();
      expect(answer).toMatchObject({
        issuer: "http://127.0.0.1",
        code_challenge_methods_supported: ["S256"],
      });
    }
    const resource: unknown = await (
      await fetch(`${people.gateway().origin}/.well-known/oauth-protected-resource/mcp`)
    ).json();
    expect(resource).toMatchObject({
      resource: "http://127.0.0.1/mcp",
      authorization_servers: ["http://127.0.0.1"],
    });
  });

  test("a client registers and connects, and its token works within the granted scopes", async () => {
    const { tokens } = await connected({ decided: { bundle: "read_only" } });
    expect(tokens).toMatchObject({ token_type: "Bearer", expires_in: 3_600 });
    expect(textAt(tokens, "scope").split(" ").toSorted()).toEqual([
      "inference",
      "read:analytics",
      "read:byok",
      "read:connections",
      "read:credits",
      "read:hub",
      "read:llm-keys",
      "read:presets",
    ]);
    expect((await bearer(textAt(tokens, "access_token"), "/keys")).status).toBe(200);
    expect((await bearer(textAt(tokens, "access_token"), "/security/ip-allowlist")).status).toBe(
      403,
    );
    const standard = await connected({ decided: { bundle: "standard" } });
    // The contract's list, to the letter.
    expect(textAt(standard.tokens, "scope").split(" ").toSorted()).toEqual([
      "inference",
      "read:analytics",
      "read:byok",
      "read:connections",
      "read:credits",
      "read:hub",
      "read:llm-keys",
      "read:presets",
      "write:connections",
      "write:hub",
      "write:llm-keys",
      "write:presets",
    ]);
    const [newest] = Object(await people.owner.json("GET", "/connections")).data;
    expect(["standard", "read_only"]).toContain(newest.bundle);
  });

  test("the redirect has state and iss, also when the person declines", async () => {
    const id = await clientId();
    const approved = await consented(id);
    expect([approved.searchParams.get("state"), approved.searchParams.get("iss")]).toEqual([
      "the state",
      "http://127.0.0.1",
    ]);
    const declined = await consented(id, { decided: { decision: "decline" } });
    expect([
      declined.searchParams.get("error"),
      declined.searchParams.get("code"),
      declined.searchParams.get("iss"),
    ]).toEqual(["access_denied", null, "http://127.0.0.1"]);
  });

  test("a changed form grants no more than was requested", async () => {
    const { tokens } = await connected({
      asked: { scope: "read:credits inference" },
      decided: {
        bundle: "standard",
        scope: ["read:credits", "inference", "write:llm-keys", "write:management-keys"],
      },
    });
    expect(textAt(tokens, "scope")).toBe("read:credits inference");
  });

  test("a code used twice revokes its tokens", async () => {
    const { id, code, tokens } = await connected();
    expect(await errorOf(await exchange({ code, client_id: id }))).toEqual([400, "invalid_grant"]);
    expect((await bearer(textAt(tokens, "access_token"), "/auth/key")).status).toBe(401);
  });

  test.each<[string, (id: string) => Promise<Record<string, unknown>>]>([
    ["another client", async () => ({ client_id: await clientId() })],
    [
      "another redirect_uri",
      async (id) => ({ client_id: id, redirect_uri: "https://client.example/other" }),
    ],
    ["another verifier", async (id) => ({ client_id: id, code_verifier: verifier.toUpperCase() })],
    ["the challenge as its verifier", async (id) => ({ client_id: id, code_verifier: challenge })],
  ])("a code is refused with %s", async (_name, changes) => {
    const id = await clientId();
    const code = (await consented(id)).searchParams.get("code") ?? "";
    expect(await errorOf(await exchange({ code, ...(await changes(id)) }))).toEqual([
      400,
      "invalid_grant",
    ]);
    expect((await exchange({ code, client_id: id })).status).toBe(200);
  });

  test("a refresh rotates the token and adds no scopes, and reuse revokes the connection", async () => {
    const { id, tokens } = await connected({ asked: { scope: "read:credits inference" } });
    const refresh = (token: string, more: Record<string, unknown> = {}): Promise<Response> =>
      post("/mcp/oauth/token", {
        grant_type: "refresh_token",
        refresh_token: token,
        client_id: id,
        ...more,
      });
    const second: unknown = await (
      await refresh(textAt(tokens, "refresh_token"), { scope: "write:llm-keys" })
    ).json();
    expect(textAt(second, "scope")).toBe("read:credits inference");
    expect(
      await errorOf(
        await refresh(textAt(second, "refresh_token"), { client_id: await clientId() }),
      ),
    ).toEqual([400, "invalid_grant"]);
    expect(await errorOf(await refresh(textAt(tokens, "refresh_token")))).toEqual([
      400,
      "invalid_grant",
    ]);
    expect((await bearer(textAt(second, "access_token"), "/auth/key")).status).toBe(401);
  });

  test.each<[string, Record<string, string | null>]>([
    ["an unknown client", { client_id: "client_nobody" }],
    ["an unregistered redirect", { redirect_uri: "https://evil.example/cb" }],
    ["a suffix of the host", { redirect_uri: "https://client.example.evil.example/cb" }],
    ["user info", { redirect_uri: "https://client.example@evil.example/cb" }],
    ["another path", { redirect_uri: "https://client.example/cb/../x" }],
    ["a fragment", { redirect_uri: `${callback}#x` }],
    ["another port", { redirect_uri: "https://client.example:444/cb" }],
    ["another scheme", { redirect_uri: "http://client.example/cb" }],
    ["a query", { redirect_uri: `${callback}?next=x` }],
    ["upper case", { redirect_uri: "https://CLIENT.example/cb" }],
    ["a script", { redirect_uri: "javascript:alert(1)" }],
  ])("%s is shown to the person without a redirect", async (_name, changes) => {
    const response = await people.owner.ask(
      "GET",
      `${authorizePath}?${query(await clientId(), changes)}`,
    );
    expect([response.status, response.headers.get("location")]).toEqual([400, null]);
  });

  test.each<[string, Record<string, string | null>]>([
    ["unsupported_response_type", { response_type: "token" }],
    ["invalid_request", { code_challenge: null }],
    ["invalid_request", { code_challenge_method: "plain" }],
    ["invalid_request", { code_challenge_method: null }],
    ["invalid_scope", { scope: "unheard:of" }],
    ["invalid_target", { resource: "https://other.example/mcp" }],
    ["invalid_target", { resource: "http://127.0.0.1/mcp#x" }],
  ])("%s is reported to the app: %p", async (error, changes) => {
    const response = await people.owner.ask(
      "GET",
      `${authorizePath}?${query(await clientId(), changes)}`,
    );
    const location = new URL(response.headers.get("location") ?? "");
    expect([
      response.status,
      location.origin,
      location.searchParams.get("error"),
      location.searchParams.get("iss"),
    ]).toEqual([303, "https://client.example", error, "http://127.0.0.1"]);
  });

  test("a token is bound to its resource, and another resource is refused", async () => {
    const id = await clientId();
    const code =
      (await consented(id, { asked: { resource: "http://127.0.0.1/mcp" } })).searchParams.get(
        "code",
      ) ?? "";
    expect(
      await errorOf(
        await exchange({ code, client_id: id, resource: "http://127.0.0.1/api/v1/mcp" }),
      ),
    ).toEqual([400, "invalid_target"]);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["loopback without a type", { redirect_uris: ["http://127.0.0.1:33418/callback"] }, "native"],
    ["localhost without a type", { redirect_uris: ["http://localhost:3000/cb"] }, "native"],
    [
      "a custom scheme",
      { redirect_uris: ["cursor://anysphere.cursor-retrieval/oauth/callback"] },
      "native",
    ],
    ["https", {}, "web"],
  ])("a client with %s is registered", async (_name, body, type) => {
    const response = await register(body);
    expect([response.status, at(await response.json(), "application_type")]).toEqual([201, type]);
  });

  test("loopback redirects can use any port", async () => {
    const id = await clientId({ redirect_uris: ["http://127.0.0.1/callback"] });
    const back = await consented(id, {
      asked: { redirect_uri: "http://127.0.0.1:51234/callback" },
    });
    expect(back.href).toStartWith("http://127.0.0.1:51234/callback?code=");
    const wrong = await people.owner.ask(
      "GET",
      `${authorizePath}?${query(id, { redirect_uri: "http://127.0.0.1:51234/other" })}`,
    );
    expect(wrong.status).toBe(400);
  });

  test.each<[string, Record<string, unknown>]>([
    ["invalid_redirect_uri", { redirect_uris: ["http://client.example/cb"] }],
    ["invalid_redirect_uri", { redirect_uris: ["javascript:alert(1)"] }],
    ["invalid_redirect_uri", { redirect_uris: ["https://client.example/#x"] }],
    ["invalid_redirect_uri", { redirect_uris: ["https://user@client.example/"] }],
    ["invalid_client_metadata", { redirect_uris: [] }],
    ["invalid_client_metadata", { redirect_uris: "https://client.example" }],
    ["invalid_client_metadata", { client_name: "x".repeat(101) }],
  ])("%s returns %p", async (error, body) => {
    expect(await errorOf(await register(body))).toEqual([400, error]);
  });

  test("a removed member loses the apps connected in the organization", async () => {
    const organization: unknown = await people.owner.json("POST", "/organizations", {
      name: "Team",
    });
    const organizationId = textAt(organization, "id");
    const member = await people.invited(organizationId, {
      email: "member@example.com",
      role: "member",
    });
    const workspaceId = textAt(organization, "workspace_id");
    const id = await clientId();
    const shown = await member.ask("GET", `${authorizePath}?${query(id)}`);
    const answer = await member.ask(
      "POST",
      authorizePath,
      formWith(await shown.text(), { decision: "approve", workspace_id: workspaceId }),
    );
    const code = new URL(answer.headers.get("location") ?? "").searchParams.get("code") ?? "";
    const tokens: unknown = await (await exchange({ code, client_id: id })).json();
    expect((await bearer(textAt(tokens, "access_token"), "/auth/key")).status).toBe(200);
    const userId = textAt(tokens, "user_id");
    await people.owner.json("DELETE", `/organizations/${organizationId}/members/${userId}`);
    expect((await bearer(textAt(tokens, "access_token"), "/auth/key")).status).toBe(401);
  });
});
