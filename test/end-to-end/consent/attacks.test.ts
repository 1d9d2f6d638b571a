import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../support/fake-clock.ts";
import { textAt } from "../api/at.ts";
import {
  type Browser,
  ownersPassword,
  type PeopledGateway,
  startPeopled,
} from "../api/people-browser.ts";
import { engines } from "../api/two-workspaces.ts";
import {
  AppSide,
  authorizationCode,
  authorizePath,
  authorizeQuery,
  callback,
  challenge,
  decideAt,
  decideDevice,
  keyCode,
  placeOf,
  verifier,
} from "./flows.ts";
import { formOf, formWith } from "./page-form.ts";

const otherVerifier = "a-verifier-that-the-thief-of-a-code-made-up-0123456789";

describe.each(engines)("attacks on codes, tokens and redirects, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  let app: AppSide;
  const clock = new FakeClock();
  beforeAll(async () => {
    people = await startPeopled(await freshUrl(), {}, { clock });
    app = new AppSide(people.gateway().baseUrl);
  }, 240_000);
  afterAll(() => people.stop());

  interface Victim {
    clientId: string;
    code: string;
    accessToken: string;
    refreshToken: string;
  }
  const victim = async (): Promise<Victim> => {
    const clientId = await app.clientId();
    const code = await authorizationCode(people.owner, clientId, {
      asked: { scope: "read:credits inference" },
    });
    const tokens: unknown = await (await app.exchange({ code, client_id: clientId })).json();
    return {
      clientId,
      code,
      accessToken: textAt(tokens, "access_token"),
      refreshToken: textAt(tokens, "refresh_token"),
    };
  };
  const oauthCode = async (): Promise<{ clientId: string; code: string }> => {
    const clientId = await app.clientId();
    return { clientId, code: await authorizationCode(people.owner, clientId) };
  };
  /** Another tab of the owner's browser. */
  const ownersTab = (): Browser => {
    const tab = people.stranger();
    for (const [name, value] of people.owner.cookies) tab.cookies.set(name, value);
    return tab;
  };
  const opens = async (token: string): Promise<number> =>
    (await app.bearer(token, "/credits")).status;

  describe("replay", () => {
    const rows: readonly [
      name: string,
      attack: (of: Victim) => Promise<Response>,
      status: number,
      connectionLives: boolean,
    ][] = [
      [
        "a code, used twice",
        ({ code, clientId }) => app.exchange({ code, client_id: clientId }),
        400,
        false,
      ],
      [
        "a refresh token, used twice",
        async ({ refreshToken }) => {
          await app.refresh(refreshToken);
          return app.refresh(refreshToken);
        },
        401,
        false,
      ],
      [
        "a code without its verifier",
        ({ code, clientId }) =>
          app.exchange({ code, client_id: clientId, code_verifier: otherVerifier }),
        400,
        true,
      ],
      [
        "a code of another client",
        async ({ code }) => app.exchange({ code, client_id: await app.clientId() }),
        400,
        true,
      ],
      [
        "a refresh token of another client",
        async ({ refreshToken }) => app.refresh(refreshToken, { client_id: await app.clientId() }),
        400,
        true,
      ],
      [
        "an access token as a refresh token",
        ({ accessToken }) => app.refresh(accessToken),
        401,
        true,
      ],
      [
        "a refresh token as an access token",
        ({ refreshToken }) => app.bearer(refreshToken, "/credits"),
        401,
        true,
      ],
      ["a code as an access token", ({ code }) => app.bearer(code, "/credits"), 401, true],
      ["an access token as a device code", ({ accessToken }) => app.poll(accessToken), 400, true],
      [
        "an OAuth code for a key",
        ({ code }) => app.json("/auth/keys", { code, code_verifier: verifier }),
        400,
        true,
      ],
    ];
    test.each(rows)("%s", async (_name, attack, status, connectionLives) => {
      const target = await victim();
      expect((await attack(target)).status).toBe(status);
      const [old, renewed] = [
        await opens(target.accessToken),
        await app.refresh(target.refreshToken),
      ];
      expect([old, renewed.status]).toEqual(connectionLives ? [200, 200] : [401, 401]);
    });

    test("a replaced access token is refused, as is a code of /auth at the token endpoint", async () => {
      const target = await victim();
      await app.refresh(target.refreshToken);
      expect(await opens(target.accessToken)).toBe(401);
      const code = await keyCode(people.owner);
      expect((await app.exchange({ code, client_id: target.clientId })).status).toBe(400);
      expect((await app.json("/auth/keys", { code, code_verifier: verifier })).status).toBe(200);
      expect((await app.json("/auth/keys", { code, code_verifier: verifier })).status).toBe(400);
    });

    test("a device code works only for the client that requested it", async () => {
      const [own, other] = [await app.clientId(), await app.clientId()];
      const { deviceCode, userCode } = await app.startDevice({ client_id: own });
      await decideDevice(people.owner, userCode);
      const poll = (clientId: string): Promise<Response> =>
        app.form("/oauth/token", {
          grant_type: "urn:ietf:params:oauth:grant-type:device_code",
          device_code: deviceCode,
          client_id: clientId,
        });
      expect([(await poll(other)).status, (await poll(own)).status]).toEqual([400, 200]);
    });
  });

  describe("mix-up attacks", () => {
    test("every redirect names its issuer, refusals too, and returns state unchanged", async () => {
      const clientId = await app.clientId();
      const strange = "a&b=c#d%00<e>\"'é";
      for (const [asked, decided] of [
        [{}, {}],
        [{}, { decision: "decline" }],
      ] as const) {
        const answer = await decideAt(
          people.owner,
          `${authorizePath}?${authorizeQuery(clientId, { ...asked, state: strange })}`,
          decided,
        );
        const { searchParams } = placeOf(answer);
        expect([searchParams.get("iss"), searchParams.get("state")]).toEqual([
          "http://127.0.0.1",
          strange,
        ]);
      }
      const refused = await people.owner.ask(
        "GET",
        `${authorizePath}?${authorizeQuery(clientId, { scope: "none" })}`,
      );
      expect(placeOf(refused).searchParams.get("iss")).toBe("http://127.0.0.1");
    });

    test("a resource of another server gets no token", async () => {
      const clientId = await app.clientId();
      const query = authorizeQuery(clientId, { resource: "https://evil.example/mcp" });
      const foreign = await people.owner.ask("GET", `${authorizePath}?${query}`);
      expect(placeOf(foreign).searchParams.get("error")).toBe("invalid_target");
    });
  });

  const redirects = [
    "https://client.example.evil.example/cb",
    "https://client.example@evil.example/cb",
    "https://evil.example/client.example/cb",
    "https://evil-client.example/cb",
    "https://client.example/cb/",
    "https://client.example/cb/../cb",
    "https://client.example/./cb",
    "https://client.example/%63b",
    "https://client.example/cb?x=1",
    "https://client.example/cb#x",
    "https://client.example/cb%00",
    "https://client.example:443/cb",
    "https://client.example:444/cb",
    "http://client.example/cb",
    "HTTPS://client.example/cb",
    "https://CLIENT.example/cb",
    "https://client.example./cb",
    "https://clіent.example/cb",
    "https:\\\\client.example\\cb",
    "//client.example/cb",
    "https:client.example/cb",
    " https://client.example/cb",
    "https://client.example/cb\n",
    "https://client.example\t/cb",
    "javascript://client.example/cb%0aalert(1)",
    "data:text/html,x",
    "cursor://client.example/cb",
    "http://127.0.0.1.evil.example/cb",
    "http://127.0.0.1@evil.example/cb",
    "http://evil.example:80@127.0.0.1/cb",
    "http://localhost/cb",
    "http://[::1]/cb",
    "http://2130706433/cb",
    "http://0x7f.1/cb",
    "http://127.1/cb",
    "http://127.0.0.2/cb",
    "http://0.0.0.0/cb",
    "http://[::ffff:127.0.0.1]/cb",
    "http://0177.0.0.1/cb",
    "http://127.0.0.1:x/cb",
    "http://127.0.0.1:8080/other",
    "http://127.0.0.1/a/../cb",
    "https://127.0.0.1/cb",
    "",
  ];
  test.each(redirects)("the redirect URI %j is refused", async (uri) => {
    const clientId = await app.clientId({ redirect_uris: [callback, "http://127.0.0.1/cb"] });
    const path = `${authorizePath}?${authorizeQuery(clientId, { redirect_uri: uri })}`;
    const answer = await people.owner.ask("GET", path);
    expect([answer.status, answer.headers.get("location")]).toEqual([400, null]);
    const good = await (
      await people.owner.ask("GET", `${authorizePath}?${authorizeQuery(clientId)}`)
    ).text();
    const tampered = await people.owner.ask(
      "POST",
      authorizePath,
      formWith(good, { decision: "approve", asked_redirect_uri: uri }),
    );
    expect([tampered.status, tampered.headers.get("location")]).toEqual([400, null]);
  });

  test("a repeated parameter is refused", async () => {
    const clientId = await app.clientId();
    const twice = await people.owner.ask(
      "GET",
      `${authorizePath}?${authorizeQuery(clientId)}&redirect_uri=https://evil.example`,
    );
    expect([twice.status, twice.headers.get("location")]).toEqual([400, null]);
    const form = "grant_type=refresh_token&grant_type=authorization_code&refresh_token=x";
    const answer = await fetch(`${people.gateway().baseUrl}/oauth/token`, {
      method: "POST",
      body: new URLSearchParams(form),
    });
    expect([answer.status, textAt(await answer.json(), "error")]).toEqual([400, "invalid_request"]);
  });

  test("an invalid request leads nobody to a site of the client before they sign in", async () => {
    const clientId = await app.clientId({ redirect_uris: [callback, "http://127.0.0.1/cb"] });
    const path = (uri: string): string =>
      `${authorizePath}?${authorizeQuery(clientId, { redirect_uri: uri, scope: "none" })}`;
    const [site, native] = [path(callback), path("http://127.0.0.1:9/cb")];
    const shown = await people.stranger().ask("GET", site);
    expect([shown.status, shown.headers.get("location")]).toEqual([400, null]);
    expect(await shown.text()).toContain(`href="/sign-in?return_to=${encodeURIComponent(site)}"`);
    const back = [await people.owner.ask("GET", site), await people.stranger().ask("GET", native)];
    expect(back.map((answer) => placeOf(answer).searchParams.get("error"))).toEqual([
      "invalid_scope",
      "invalid_scope",
    ]);
  });

  const callbacks: readonly [url: string, shown: string | null][] = [
    ["https://app.example/cb", "app.example"],
    ["https://app.example@evil.example/cb", null],
    ["https://app.example\\@evil.example/", null],
    ["https://app.example/#@evil.example", null],
    ["https://app.example%00.evil.example/", null],
    ["http://app.example/cb", null],
    ["http://127.0.0.1.evil.example/", null],
    ["http://localhost.evil.example/", null],
    ["https://clіent.example/", "xn--"],
    ["http://2130706433:3000/", "127.0.0.1:3000"],
    ["http://127.0.0.2/", null],
    ["ftp://app.example/", null],
    ["javascript:alert(1)", null],
    ["//evil.example/", null],
    ["https://evil.example?.app.example/", "evil.example"],
  ];
  test.each(callbacks)(
    "the callback %j is shown as it will be called (%p), or refused",
    async (url, host) => {
      const query = new URLSearchParams({
        callback_url: url,
        code_challenge: challenge,
        code_challenge_method: "S256",
      });
      const shown = await people.owner.ask("GET", `/auth?${query.toString()}`);
      const page = await shown.text();
      expect([shown.status, shown.headers.get("location")]).toEqual([
        host === null ? 400 : 200,
        null,
      ]);
      if (host === null) return;
      const answer = await people.owner.ask(
        "POST",
        "/auth",
        formWith(page, { decision: "approve" }),
      );
      const { origin, host: went } = placeOf(answer);
      expect([page.includes(`<dt>Code goes to</dt><dd>${origin}/`), went.startsWith(host)]).toEqual(
        [true, true],
      );
    },
  );

  const elsewhere = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "/%09/evil.example\t",
    "javascript:alert(1)",
    "\\\\evil.example",
  ];
  test.each(elsewhere)(
    "return_to %j does not leave the service from any page",
    async (returnTo) => {
      const to = encodeURIComponent(returnTo);
      // Attempts to sign in are bounded in time.
      clock.advance(901_000);
      const stranger = people.stranger();
      const signedIn = await stranger.ask(
        "POST",
        "/sign-in",
        new URLSearchParams({
          email: "owner@example.com",
          password: ownersPassword,
          return_to: returnTo,
        }),
      );
      expect([signedIn.status, signedIn.headers.get("location")]).toEqual([303, "/"]);
      expect((await stranger.ask("GET", `/sign-in?return_to=${to}`)).headers.get("location")).toBe(
        "/",
      );
      expect(await (await stranger.ask("GET", `/sign-out?return_to=${to}`)).text()).not.toContain(
        "evil.example",
      );
      const signedOut = await stranger.ask(
        "POST",
        "/sign-out",
        new URLSearchParams({ return_to: returnTo }),
      );
      expect(signedOut.headers.get("location")).toBe("/sign-in?note=signed-out");
    },
  );

  describe("cross-site requests", () => {
    type Change = (browser: Browser) => void;
    const pages: readonly [path: string, again: () => Promise<string>][] = [
      [
        "/auth",
        async () => `/auth?callback_url=https://app.example/cb&code_challenge=${challenge}`,
      ],
      [authorizePath, async () => `${authorizePath}?${authorizeQuery(await app.clientId())}`],
      ["/device", async () => `/device?user_code=${(await app.startDevice()).userCode}`],
    ];
    const foreign: readonly [name: string, change: Change][] = [
      ["a foreign origin", (browser) => (browser.origin = "https://evil.example")],
      ["an opaque origin", (browser) => (browser.origin = "null")],
      ["no origin", (browser) => (browser.origin = null)],
      ["another site", (browser) => (browser.headers = { "sec-fetch-site": "cross-site" })],
      ["another site", (browser) => (browser.headers = { "sec-fetch-site": "same-site" })],
      ["another port", (browser) => (browser.origin = "http://127.0.0.1:1")],
    ];
    const cases = pages.flatMap(([path, again]) =>
      foreign.map(([name, change]) => [name, path, again, change] as const),
    );

    test.each(cases)("%s cannot send the form of %s", async (_name, path, again, change) => {
      const browser = ownersTab();
      const shown = await browser.ask("GET", await again());
      const page = await shown.text();
      expect(shown.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(shown.headers.get("x-frame-options")).toBe("DENY");
      const form = formOf(page);
      form.set("decision", "approve");
      change(browser);
      const answer = await browser.ask("POST", path, form);
      expect([answer.status, answer.headers.get("location")]).toEqual([403, null]);
    });

    test.each(foreign.filter(([name]) => name !== "no origin"))(
      "%s can neither sign a person in nor out",
      async (_name, change) => {
        const browser = people.stranger();
        change(browser);
        const signIn = { email: "owner@example.com", password: ownersPassword };
        expect((await browser.ask("POST", "/sign-in", new URLSearchParams(signIn))).status).toBe(
          403,
        );
        expect([...browser.cookies]).toEqual([]);
        const own = ownersTab();
        change(own);
        expect((await own.ask("POST", "/sign-out", new URLSearchParams())).status).toBe(403);
        expect((await own.ask("GET", "/api/v1/session")).status).toBe(200);
      },
    );

    test("a link alone decides nothing", async () => {
      const { deviceCode, userCode } = await app.startDevice();
      const auth = `/auth?callback_url=https://app.example/cb&code_challenge=${challenge}`;
      for (const path of [`/device?user_code=${userCode}`, auth]) {
        const answer = await people.owner.ask("GET", `${path}&decision=approve`);
        expect([answer.status, answer.headers.get("location")]).toEqual([200, null]);
      }
      expect(textAt(await (await app.poll(deviceCode)).json(), "error")).toBe(
        "authorization_pending",
      );
    });
  });

  // Last, since the sessions of the other tests end with the time that passes.
  const expiries = [
    ["an authorization code", 601_000],
    ["a refresh token", 91 * 86_400_000],
  ] as const;
  test.each(expiries)("%s that has expired returns invalid_grant", async (name, afterMs) => {
    const fresh = await oauthCode();
    const target = await victim();
    clock.advance(afterMs);
    const answer =
      name === "a refresh token"
        ? await app.refresh(target.refreshToken)
        : await app.exchange({ code: fresh.code, client_id: fresh.clientId });
    expect(textAt(await answer.json(), "error")).toBe("invalid_grant");
  });
});
