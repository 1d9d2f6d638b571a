import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { at, textAt } from "../api/at.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import { engines } from "../api/two-workspaces.ts";
import { AppSide, authorizationCode, connectDevice } from "./flows.ts";

describe.each(engines)("tokens are for their client and audience alone, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  let app: AppSide;
  beforeAll(async () => {
    people = await startPeopled(await freshUrl());
    app = new AppSide(people.gateway().baseUrl);
  }, 240_000);
  afterAll(() => people.stop());

  async function connected(
    resource?: string,
  ): Promise<{ clientId: string; token: string; refreshToken: string }> {
    const clientId = await app.clientId();
    const asked = resource === undefined ? {} : { resource };
    const code = await authorizationCode(people.owner, clientId, { asked });
    const tokens: unknown = await (await app.exchange({ code, client_id: clientId })).json();
    return {
      clientId,
      token: textAt(tokens, "access_token"),
      refreshToken: textAt(tokens, "refresh_token"),
    };
  }

  const statuses = async (token: string): Promise<[rest: number, mcp: number]> => {
    const { baseUrl } = people.gateway();
    const headers = { authorization: `Bearer ${token}` };
    const rest = await fetch(`${baseUrl}/auth/key`, { headers });
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const mcp = await fetch(`${baseUrl}/mcp`, { method: "POST", headers, body });
    return [rest.status, mcp.status];
  };

  test.each([
    ["/mcp", [401, 200]],
    ["/api/v1/mcp", [401, 200]],
    ["/api/v1", [200, 401]],
    ["/v1", [200, 401]],
    ["", [200, 200]],
  ] as const)("a token for the resource %p answers %j at REST and MCP", async (path, expected) => {
    const { token, refreshToken, clientId } = await connected(`http://127.0.0.1${path}`);
    expect(await statuses(token)).toEqual([...expected]);
    const renewed: unknown = await (
      await app.form("/oauth/token", {
        grant_type: "refresh_token",
        refresh_token: refreshToken,
        client_id: clientId,
      })
    ).json();
    expect(await statuses(textAt(renewed, "access_token"))).toEqual([...expected]);
  });

  test("a token for no resource is for both", async () => {
    expect(await statuses((await connected()).token)).toEqual([200, 200]);
  });

  test.each(["/oauth/revoke", "/mcp/oauth/revoke"])(
    "%s takes a token only from the client that it belongs to",
    async (path) => {
      const { clientId, token, refreshToken } = await connected();
      const other = await app.clientId();
      for (const presented of [token, refreshToken])
        for (const fields of [{}, { client_id: other }, { client_id: "unknown" }]) {
          const refused = await app.form(path, { token: presented, ...fields });
          expect([refused.status, at(await refused.json(), "error")]).toEqual([
            400,
            "invalid_client",
          ]);
        }
      expect((await statuses(token))[0]).toBe(200);
      const given = await app.form(path, { token: refreshToken, client_id: clientId });
      expect([given.status, (await statuses(token))[0]]).toEqual([200, 401]);
      const device = textAt(await connectDevice(app, people.owner), "access_token");
      expect((await app.form(path, { token: device, client_id: other })).status).toBe(400);
      expect((await app.form(path, { token: device })).status).toBe(200);
    },
  );

  test("a refresh that fails is 400, and 401 for agents without a client id", async () => {
    const refresh = (fields: Record<string, string>): Promise<Response> =>
      app.form("/oauth/token", { grant_type: "refresh_token", refresh_token: "gone", ...fields });
    expect((await refresh({ client_id: await app.clientId() })).status).toBe(400);
    expect((await refresh({})).status).toBe(401);
  });
});
