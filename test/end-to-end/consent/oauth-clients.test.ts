import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as oauth from "oauth4webapi";
import * as client from "openid-client";
import { textAt } from "../api/at.ts";
import { type PeopledGateway, startAtOrigin } from "../api/people-browser.ts";
import { engines } from "../api/two-workspaces.ts";
import { callback, decideAt, decideDevice, placeOf } from "./flows.ts";

const insecure = { [oauth.allowInsecureRequests]: true } as const;

describe.each(engines)("published OAuth clients, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  beforeAll(async () => {
    people = await startAtOrigin(await freshUrl());
  }, 240_000);
  afterAll(() => people.stop());

  const origin = (): string => people.gateway().origin;
  /** A person approves what an app's address asks for; gives where the browser goes back to. */
  const approve = async (url: URL): Promise<URL> =>
    placeOf(await decideAt(people.owner, url.pathname + url.search));
  const opens = async (token: string): Promise<number> =>
    (await fetch(`${origin()}/api/v1/credits`, { headers: { authorization: `Bearer ${token}` } }))
      .status;

  describe("openid-client", () => {
    const registered = (): Promise<client.Configuration> =>
      client.dynamicClientRegistration(
        new URL(origin()),
        {
          redirect_uris: [callback],
          client_name: "openid-client",
          token_endpoint_auth_method: "none",
        },
        client.None(),
        { execute: [client.allowInsecureRequests], algorithm: "oauth2" },
      );

    test("registers, connects with a code, refreshes and revokes its token", async () => {
      const config = await registered();
      const pkceCodeVerifier = client.randomPKCECodeVerifier();
      const expectedState = client.randomState();
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: "read:credits inference",
        state: expectedState,
        code_challenge_method: "S256",
        code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      });
      const tokens = await client.authorizationCodeGrant(config, await approve(url), {
        pkceCodeVerifier,
        expectedState,
      });
      expect([tokens.scope, await opens(tokens.access_token)]).toEqual([
        "read:credits inference",
        200,
      ]);
      const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? "");
      expect([await opens(tokens.access_token), await opens(refreshed.access_token)]).toEqual([
        401, 200,
      ]);
      await client.tokenRevocation(config, refreshed.access_token);
      expect(await opens(refreshed.access_token)).toBe(401);
      await expect(
        client.refreshTokenGrant(config, refreshed.refresh_token ?? ""),
      ).rejects.toMatchObject({ error: "invalid_grant" });
    });

    test("connects a device, with refresh tokens on request", async () => {
      const config = await registered();
      const started = await client.initiateDeviceAuthorization(config, {
        scope: "read:credits inference offline_access",
      });
      const polling = client.pollDeviceAuthorizationGrant(config, started);
      expect((await decideDevice(people.owner, started.user_code)).status).toBe(200);
      const tokens = await polling;
      expect(await opens(tokens.access_token)).toBe(200);
      const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? "");
      expect(await opens(refreshed.access_token)).toBe(200);
      await client.tokenRevocation(config, refreshed.refresh_token ?? "");
      expect(await opens(refreshed.access_token)).toBe(401);
    });

    test("receives access_denied when the person declines", async () => {
      const config = await registered();
      const started = await client.initiateDeviceAuthorization(config, {});
      await decideDevice(people.owner, started.user_code, { decision: "decline" });
      await expect(client.pollDeviceAuthorizationGrant(config, started)).rejects.toMatchObject({
        error: "access_denied",
      });
    });

    test("rejects a response with another issuer, or without one", async () => {
      const config = await registered();
      const pkceCodeVerifier = client.randomPKCECodeVerifier();
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        code_challenge_method: "S256",
        code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      });
      const back = await approve(url);
      for (const issuer of ["https://evil.example", null]) {
        const changed = new URL(back);
        if (issuer === null) changed.searchParams.delete("iss");
        else changed.searchParams.set("iss", issuer);
        await expect(
          client.authorizationCodeGrant(config, changed, { pkceCodeVerifier }),
        ).rejects.toThrow();
      }
      expect(
        (await client.authorizationCodeGrant(config, back, { pkceCodeVerifier })).access_token,
      ).toStartWith("sk-svc-");
    });
  });

  describe("oauth4webapi", () => {
    const discovered = async (): Promise<oauth.AuthorizationServer> => {
      const issuer = new URL(origin());
      const answer = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
      return oauth.processDiscoveryResponse(issuer, answer);
    };
    const registered = async (server: oauth.AuthorizationServer): Promise<oauth.Client> => {
      const wanted = {
        redirect_uris: [callback],
        client_name: "oauth4webapi",
        token_endpoint_auth_method: "none",
      };
      return oauth.processDynamicClientRegistrationResponse(
        await oauth.dynamicClientRegistrationRequest(server, wanted, insecure),
      );
    };

    test("discovers the server and every endpoint from the resource", async () => {
      for (const path of ["", "/mcp", "/api/v1"]) {
        const resource = new URL(origin() + path);
        const answer = await oauth.resourceDiscoveryRequest(resource, insecure);
        const { authorization_servers: servers } = await oauth.processResourceDiscoveryResponse(
          resource,
          answer,
        );
        expect(servers).toEqual([origin()]);
      }
      const unauthorized = await oauth
        .protectedResourceRequest(
          "unknown",
          "POST",
          new URL(`${origin()}/mcp`),
          undefined,
          "{}",
          insecure,
        )
        .catch((error: unknown) => error);
      expect(unauthorized).toBeInstanceOf(oauth.WWWAuthenticateChallengeError);
      const below = new URL(`${origin()}/mcp`);
      expect(
        (await oauth.discoveryRequest(below, { algorithm: "oauth2", ...insecure })).status,
      ).toBe(200);
    });

    test("connects with a code under strict validation, refreshes and revokes", async () => {
      const server = await discovered();
      const app = await registered(server);
      const verifier = oauth.generateRandomCodeVerifier();
      const state = oauth.generateRandomState();
      const url = new URL(server.authorization_endpoint ?? "");
      const asked = {
        client_id: app.client_id,
        redirect_uri: callback,
        response_type: "code",
        scope: "read:credits",
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        resource: `${origin()}/api/v1`,
      };
      for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
      const back = await approve(url);
      expect(() =>
        oauth.validateAuthResponse({ ...server, issuer: "https://evil.example" }, app, back, state),
      ).toThrow();
      expect(() => oauth.validateAuthResponse(server, app, back, "another state")).toThrow();
      const parameters = oauth.validateAuthResponse(server, app, back, state);
      const exchange = (): Promise<Response> =>
        oauth.authorizationCodeGrantRequest(
          server,
          app,
          oauth.None(),
          parameters,
          callback,
          verifier,
          insecure,
        );
      const tokens = await oauth.processAuthorizationCodeResponse(server, app, await exchange());
      expect([tokens.token_type, tokens.scope, await opens(tokens.access_token)]).toEqual([
        "bearer",
        "read:credits",
        200,
      ]);
      const refreshed = await oauth.processRefreshTokenResponse(
        server,
        app,
        await oauth.refreshTokenGrantRequest(
          server,
          app,
          oauth.None(),
          tokens.refresh_token ?? "",
          insecure,
        ),
      );
      expect(await opens(refreshed.access_token)).toBe(200);
      const revocation = await oauth.revocationRequest(
        server,
        app,
        oauth.None(),
        refreshed.refresh_token ?? "",
        insecure,
      );
      expect(await oauth.processRevocationResponse(revocation)).toBeUndefined();
      expect(await opens(refreshed.access_token)).toBe(401);
      const replayed = await exchange();
      await expect(
        oauth.processAuthorizationCodeResponse(server, app, replayed),
      ).rejects.toMatchObject({ error: "invalid_grant" });
    });

    test("connects a device and reads every pending state", async () => {
      const server = await discovered();
      const app = await registered(server);
      const started = await oauth.processDeviceAuthorizationResponse(
        server,
        app,
        await oauth.deviceAuthorizationRequest(
          server,
          app,
          oauth.None(),
          { scope: "read:credits" },
          insecure,
        ),
      );
      const poll = async (): Promise<oauth.TokenEndpointResponse> =>
        oauth.processDeviceCodeResponse(
          server,
          app,
          await oauth.deviceCodeGrantRequest(
            server,
            app,
            oauth.None(),
            started.device_code,
            insecure,
          ),
        );
      await expect(poll()).rejects.toMatchObject({ error: "authorization_pending" });
      await expect(poll()).rejects.toMatchObject({ error: "slow_down" });
      expect((await decideDevice(people.owner, started.user_code)).status).toBe(200);
      const tokens = await poll();
      expect(await opens(tokens.access_token)).toBe(200);
      await expect(poll()).rejects.toMatchObject({ error: "expired_token" });
    });

    test("reads the error of an invalid registration", async () => {
      const server = await discovered();
      const answer = await oauth.dynamicClientRegistrationRequest(
        server,
        { redirect_uris: ["http://client.example/cb"] },
        insecure,
      );
      const refused: unknown = await oauth
        .processDynamicClientRegistrationResponse(answer)
        .catch((error: unknown) => error);
      expect(refused).toMatchObject({ error: "invalid_redirect_uri" });
      expect(textAt(refused, "error_description")).toContain("redirect_uris");
    });
  });
});
