import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../support/fake-clock.ts";
import { at, textAt } from "../api/at.ts";
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
  challenge,
  connectDevice,
  decideDevice,
  keyCode,
  placeOf,
  verifier,
} from "./flows.ts";
import { formWith } from "./page-form.ts";

describe.each(engines)("attacks on people who give consent, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  let app: AppSide;
  const clock = new FakeClock();
  beforeAll(async () => {
    people = await startPeopled(await freshUrl(), { trustProxy: true }, { clock });
    app = new AppSide(people.gateway().baseUrl);
  }, 240_000);
  afterAll(() => people.stop());

  const signedIn = async (): Promise<Browser> => {
    const browser = people.stranger();
    await browser.signIn("owner@example.com", ownersPassword);
    return browser;
  };
  const opens = async (token: string): Promise<number> =>
    (await app.bearer(token, "/auth/key")).status;
  const asked = (secret: string, method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(people.gateway().baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${secret}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const authPath = `/auth?callback_url=https%3A%2F%2Fapp.example%2Fcb&code_challenge=${challenge}&code_challenge_method=S256`;

  describe("wider scopes are refused", () => {
    test("by a refresh, a registration, a changed form or a bundle that was not requested", async () => {
      const clientId = await app.clientId({
        scope: "write:llm-keys write:management-keys write:security",
      });
      const tampered = {
        bundle: "standard",
        scope: ["read:credits", "write:llm-keys", "write:management-keys", "write:security"],
      };
      const wide = { asked: { scope: "read:credits write:security" }, decided: tampered };
      const code = await authorizationCode(people.owner, clientId, wide);
      const tokens: unknown = await (
        await app.exchange({ code, client_id: clientId, scope: "write:llm-keys" })
      ).json();
      expect(textAt(tokens, "scope")).toBe("read:credits");
      const refreshed: unknown = await (
        await app.refresh(textAt(tokens, "refresh_token"), { scope: "inference write:llm-keys" })
      ).json();
      expect(textAt(refreshed, "scope")).toBe("read:credits");
    });

    test("by limits, expiry dates and models above the requested ones", async () => {
      const soon = new Date(clock.nowMs() + 3_600_000).toISOString();
      const code = await keyCode(
        people.owner,
        { limit: "2", usage_limit_type: "daily", expires_at: soon },
        {
          limit: "9999",
          expiry: "365",
          asked_limit: "2",
        },
      );
      const key = textAt(
        await (await app.json("/auth/keys", { code, code_verifier: verifier })).json(),
        "key",
      );
      const listed: { origin: string; limit: number; expires_at: string }[] = Object(
        await people.owner.json("GET", "/connections"),
      ).data;
      const connection = listed.find(({ origin }) => origin === "key");
      expect([connection?.limit, connection?.expires_at]).toEqual([2, soon]);
      expect(await opens(key)).toBe(200);
    });

    test("by keys that a limited app creates, changes or rotates", async () => {
      const other: unknown = await people.owner.json("POST", "/keys", { name: "of the person" });
      const soon = new Date(clock.nowMs() + 86_400_000).toISOString();
      const tokens = await connectDevice(app, people.owner, {
        fields: {
          client_name: "Capped",
          scope: "inference read:llm-keys write:llm-keys offline_access",
        },
        decided: { limit: "0.5", expiry: "7", models: "acme/large" },
      });
      const secret = textAt(tokens, "access_token");
      const created = (body: Record<string, unknown>): Promise<Response> =>
        asked(secret, "POST", "/keys", { name: "child", ...body });
      for (const [param, body] of [
        ["limit", { limit: 1 }],
        ["expires_at", { expires_at: "2099-01-01T00:00:00Z" }],
        ["allowed_models[0]", { allowed_models: ["acme/other"] }],
      ] as const) {
        expect([param, textAt(await (await created(body)).json(), "error.param")]).toEqual([
          param,
          param,
        ]);
      }
      const child: unknown = await (await created({})).json();
      expect(at(child, "data")).toMatchObject({ limit: 0.5, allowed_models: ["acme/large"] });
      const [childKey, childHash] = [textAt(child, "key"), textAt(child, "data.hash")];
      expect(await opens(childKey)).toBe(200);
      const changes: readonly [
        hash: string,
        method: string,
        path: string,
        body: unknown,
        status: number,
      ][] = [
        [childHash, "PATCH", "", { limit: 1 }, 400],
        [childHash, "PATCH", "", { limit: null }, 400],
        [childHash, "PATCH", "", { expires_at: null }, 400],
        [childHash, "PATCH", "", { allowed_models: null }, 400],
        [textAt(other, "data.hash"), "POST", "/children", { name: "uncapped" }, 403],
        [childHash, "POST", "/children", { name: "c" }, 403],
        [childHash, "PATCH", "", { allowed_models: ["acme/other"] }, 400],
        [childHash, "PATCH", "", { limit: 0.2, expires_at: soon }, 200],
        [textAt(other, "data.hash"), "POST", "/rotate", {}, 403],
        [textAt(other, "data.hash"), "PATCH", "", { limit: null }, 403],
        [textAt(other, "data.hash"), "PATCH", "", { disabled: false }, 403],
        [textAt(other, "data.hash"), "PATCH", "", { disabled: true }, 200],
      ];
      for (const [hash, method, path, body, status] of changes) {
        expect([body, (await asked(secret, method, `/keys/${hash}${path}`, body)).status]).toEqual([
          body,
          status,
        ]);
      }
      // A key for a customer is no way around the cap.
      await people.owner.json("POST", "/customers", { external_id: "shop" });
      const sold = await asked(secret, "POST", "/customers/shop/keys", { name: "uncapped" });
      expect(sold.status).toBe(403);
      for (const [method, path, body] of [
        ["POST", "/customers", { external_id: "other" }],
        ["PATCH", "/customers/shop", { plan: { type: "postpaid" } }],
        ["POST", "/customers/shop/credits", { amount: 9 }],
        ["POST", "/customers/shop/balance-link", {}],
        ["DELETE", "/customers/shop", undefined],
      ] as const)
        expect([path, (await asked(secret, method, path, body)).status]).toEqual([path, 403]);
      expect((await asked(secret, "GET", "/customers/shop")).status).toBe(200);
      const rows = await people
        .gateway()
        .app.storage.database.withTables<{ llm_keys: { id: string; hash: string } }>()
        .selectFrom("llm_keys")
        .select(["id", "hash"])
        .execute();
      const listed = Object(await people.owner.json("GET", "/connections"));
      const connections: { id: string; key_id: string; client: { name: string } }[] = listed.data;
      const capped = connections.find(({ client }) => client.name === "Capped");
      const ownHash = rows.find(({ id }) => id === capped?.key_id)?.hash ?? "";
      for (const [method, path, body] of [
        ["PATCH", "", { limit: null }],
        ["POST", "/rotate", {}],
      ] as const) {
        expect((await asked(secret, method, `/keys/${ownHash}${path}`, body)).status).toBe(404);
        expect((await people.owner.api(method, `/keys/${ownHash}${path}`, body)).status).toBe(404);
      }
      // The access token ends within the hour, the connection and what it made do not.
      clock.advance(3_601_000);
      expect([await opens(secret), await opens(childKey)]).toEqual([401, 200]);
      await people.owner.json("DELETE", `/connections/${capped?.id}`);
      expect(await opens(childKey)).toBe(401);
    });

    test("by an inference key that an app without inference creates, or by minting with PKCE", async () => {
      const tokens = await connectDevice(app, people.owner, {
        fields: { scope: "read:llm-keys write:llm-keys" },
      });
      const secret = textAt(tokens, "access_token");
      expect((await asked(secret, "POST", "/keys", { name: "child" })).status).toBe(403);
      expect((await asked(secret, "POST", "/runs", { name: "r", limit: 0.1 })).status).toBe(403);
      const body = { callback_url: "https://app.example/", code_challenge: challenge };
      expect((await asked(secret, "POST", "/auth/keys/code", body)).status).toBe(403);
      expect((await asked(secret, "POST", "/key/children", { name: "child" })).status).toBe(403);
    });
  });

  describe("PKCE downgrade", () => {
    test.each<[string, Record<string, string | null>]>([
      ["plain", { code_challenge: verifier, code_challenge_method: "plain" }],
      ["no method", { code_challenge_method: null }],
      ["no challenge", { code_challenge: null }],
      ["a short challenge", { code_challenge: "short" }],
      ["s256", { code_challenge_method: "s256" }],
    ])("OAuth accepts only S256: %s", async (_name, changes) => {
      const answer = await people.owner.ask(
        "GET",
        `${authorizePath}?${authorizeQuery(await app.clientId(), changes)}`,
      );
      expect(placeOf(answer).searchParams.get("error")).toBe("invalid_request");
    });

    test.each<[string, Record<string, string>]>([
      ["the challenge as its verifier", { code_verifier: challenge }],
      [
        "the challenge as a plain verifier",
        { code_verifier: challenge, code_challenge_method: "plain" },
      ],
      [
        "the verifier with method plain",
        { code_verifier: verifier, code_challenge_method: "plain" },
      ],
      ["no verifier", {}],
    ])("a code of /auth is not exchanged with %s", async (_name, fields) => {
      const code = await keyCode(people.owner);
      expect((await app.json("/auth/keys", { code, ...fields })).status).toBe(400);
      expect((await app.json("/auth/keys", { code, code_verifier: verifier })).status).toBe(200);
    });
  });

  describe("device codes", () => {
    test("the page shows the address and time of the request, whatever name the app has", async () => {
      const name = `Trust me\u202e <b>Bank</b>`;
      const { userCode } = await app.startDevice({ client_name: name });
      const page = await (
        await people.owner.ask("POST", "/device", new URLSearchParams({ user_code: userCode }))
      ).text();
      expect(page).toContain("Connect Trust me &lt;b&gt;Bank&lt;/b&gt;");
      expect(page).toContain("Never approve a code that someone sent you.");
      for (const fact of ["Code", "Asked from", "Asked at", "Program"])
        expect(page).toContain(`<dt>${fact}</dt>`);
    });

    test("after sixty wrong codes an address is refused even a valid code, and other addresses are not", async () => {
      const guesser = await signedIn();
      guesser.headers = { "x-forwarded-for": "203.0.113.7" };
      const guess = (userCode: string): Promise<Response> =>
        guesser.ask("POST", "/device", new URLSearchParams({ user_code: userCode }));
      for (let tried = 0; tried < 60; tried += 1)
        expect((await guess("BBBB-BBBB")).status).toBe(404);
      const { deviceCode, userCode } = await app.startDevice();
      const refused = await guess(userCode);
      expect([refused.status, refused.headers.has("retry-after")]).toEqual([429, true]);
      expect((await decideDevice(people.owner, userCode)).status).toBe(200);
      expect((await app.poll(deviceCode)).status).toBe(200);
      clock.advance(901_000);
      expect((await guess((await app.startDevice()).userCode)).status).toBe(200);
    });
  });

  test("a session cookie set before sign-in is replaced at sign-in", async () => {
    const victim = people.stranger();
    victim.cookies.set("__session", "planted.by-an-attacker");
    await victim.ask(
      "POST",
      "/sign-in",
      new URLSearchParams({ email: "owner@example.com", password: ownersPassword }),
    );
    expect(victim.cookies.get("__session")).not.toBe("planted.by-an-attacker");
    const attacker = people.stranger();
    attacker.cookies.set("__session", "planted.by-an-attacker");
    expect((await attacker.ask("GET", "/api/v1/session")).status).toBe(401);
    const before = victim.cookies.get("__session");
    await victim.ask("POST", "/sign-out", new URLSearchParams());
    await victim.ask(
      "POST",
      "/sign-in",
      new URLSearchParams({ email: "owner@example.com", password: ownersPassword }),
    );
    expect(victim.cookies.get("__session")).not.toBe(before);
  });

  describe("repeated and late decisions", () => {
    test("a double click on a device's form decides once and shows the same result, as does going back", async () => {
      for (const decision of ["approve", "decline"]) {
        const { deviceCode, userCode } = await app.startDevice({ client_name: "Clicked twice" });
        const page = await (
          await people.owner.ask("POST", "/device", new URLSearchParams({ user_code: userCode }))
        ).text();
        const click = (): Promise<Response> =>
          people.owner.ask("POST", "/device", formWith(page, { decision }));
        const answers = [...(await Promise.all([click(), click()])), await click()];
        if (decision === "approve") await app.poll(deviceCode);
        answers.push(
          await click(),
          await people.owner.ask("POST", "/device", new URLSearchParams({ user_code: userCode })),
        );
        for (const answer of answers) {
          const told = decision === "approve" ? "Clicked twice is connected" : "was not connected";
          expect([answer.status, (await answer.text()).includes(told)]).toEqual([200, true]);
        }
        const stranger = await people.invited(await organization(), {
          email: `${decision}@example.com`,
          role: "member",
        });
        expect(
          (await stranger.ask("POST", "/device", new URLSearchParams({ user_code: userCode })))
            .status,
        ).toBe(404);
      }
    });

    test("two tabs and a form sent twice give separate codes, each valid once", async () => {
      const clientId = await app.clientId();
      const [one, two] = await Promise.all(
        ["one", "two"].map(async (state) =>
          (
            await people.owner.ask("GET", `${authorizePath}?${authorizeQuery(clientId, { state })}`)
          ).text(),
        ),
      );
      const send = async (page: string | undefined): Promise<URLSearchParams> =>
        placeOf(
          await people.owner.ask(
            "POST",
            authorizePath,
            formWith(page ?? "", { decision: "approve" }),
          ),
        ).searchParams;
      const answers = [await send(two), await send(one), await send(one)];
      expect(answers.map((answer) => answer.get("state"))).toEqual(["two", "one", "one"]);
      const codes = answers.map((answer) => answer.get("code") ?? "");
      expect(new Set(codes).size).toBe(3);
      for (const code of codes)
        expect((await app.exchange({ code, client_id: clientId })).status).toBe(200);
    });

    test("a form opened by another account is shown again and decides nothing", async () => {
      const page = await (await people.owner.ask("GET", authPath)).text();
      const other = await people.invited(await organization(), {
        email: "other-tab@example.com",
        role: "member",
      });
      const answer = await other.ask("POST", "/auth", formWith(page, { decision: "approve" }));
      expect([
        answer.status,
        (await answer.text()).includes("You are signed in as other-tab@example.com now"),
      ]).toEqual([400, true]);
    });

    test("switching accounts returns to the same request", async () => {
      for (const path of [authPath, `${authorizePath}?${authorizeQuery(await app.clientId())}`]) {
        const browser = await signedIn();
        const page = await (await browser.ask("GET", path)).text();
        const link = /href="(\/sign-out[^"]*)"/.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "";
        const out = await (await browser.ask("GET", link)).text();
        const signedOut = await browser.ask("POST", "/sign-out", formWith(out, {}));
        const signIn = await (
          await browser.ask("GET", signedOut.headers.get("location") ?? "")
        ).text();
        const back = await browser.ask(
          "POST",
          "/sign-in",
          formWith(signIn, { email: "owner@example.com", password: ownersPassword }),
        );
        const [went, asked] = [back.headers.get("location") ?? "", path].map(
          (each) => new URL(each, "http://127.0.0.1"),
        );
        expect(went?.pathname).toBe(asked?.pathname ?? "");
        expect(Object.fromEntries(went?.searchParams ?? [])).toEqual(
          Object.fromEntries(asked?.searchParams ?? []),
        );
      }
    });

    test("a device code, session or account that has ended approves nothing", async () => {
      const { userCode } = await app.startDevice();
      const page = await (
        await people.owner.ask("POST", "/device", new URLSearchParams({ user_code: userCode }))
      ).text();
      clock.advance(901_000);
      expect(
        (await people.owner.ask("POST", "/device", formWith(page, { decision: "approve" }))).status,
      ).toBe(404);
      const browser = await signedIn();
      const consent = await (await browser.ask("GET", authPath)).text();
      browser.cookies.clear();
      const answer = await browser.ask("POST", "/auth", formWith(consent, { decision: "approve" }));
      expect(answer.headers.get("location")).toStartWith("/sign-in?return_to=%2Fauth");
    });
  });

  let organizationId: string | undefined;
  const organization = async (): Promise<string> =>
    (organizationId ??= textAt(
      await people.owner.json("POST", "/organizations", { name: "Team" }),
      "id",
    ));

  const ends: [end: string, endOf: (userId: string) => Promise<unknown>, audited: string][] = [
    [
      "blocked",
      (userId) => people.owner.json("PATCH", `/admin/users/${userId}`, { blocked: true }),
      "its person was blocked",
    ],
    [
      "deleted",
      (userId) => people.owner.json("DELETE", `/admin/users/${userId}`),
      "the account of its person was deleted",
    ],
    [
      "removed",
      async (userId) =>
        people.owner.json("DELETE", `/organizations/${await organization()}/members/${userId}`),
      "its person is no longer a member",
    ],
  ];
  const auditedActions = async (): Promise<string[]> => {
    const rows = await people
      .gateway()
      .app.storage.database.withTables<{ audit_log: { action: string } }>()
      .selectFrom("audit_log")
      .select("action")
      .execute();
    return rows.map(({ action }) => action);
  };

  describe.each(ends)("a person who is %s", (end, endOf, audited) => {
    test("cannot use earlier approvals and loses connected apps", async () => {
      const member = await people.invited(await organization(), {
        email: `${end}@example.com`,
        role: "member",
      });
      const places = Object(await member.json("GET", "/workspaces")).data;
      const decided = { workspace_id: places.at(-1).id };
      const connected = await connectDevice(app, member, {
        fields: { scope: "inference offline_access" },
        decided,
      });
      const clientId = await app.clientId();
      const [code, forKey, device] = [
        await authorizationCode(member, clientId, { decided }),
        await keyCode(member, {}, decided),
        await app.startDevice(),
      ];
      await decideDevice(member, device.userCode, decided);
      await endOf(textAt(connected, "user_id"));
      expect(await opens(textAt(connected, "access_token"))).toBe(401);
      const answers = [
        await app.refresh(textAt(connected, "refresh_token")),
        await app.exchange({ code, client_id: clientId }),
        await app.json("/auth/keys", { code: forKey, code_verifier: verifier }),
        await app.poll(device.deviceCode),
      ];
      expect(answers.map(({ status }) => status)).toEqual([401, 400, 400, 400]);
      expect(
        Object(
          await people.owner.json(
            "GET",
            `/admin/connections?user_id=${textAt(connected, "user_id")}`,
          ),
        ).total,
      ).toBe(0);
      expect(await auditedActions()).toContain(`end app (${audited})`);
    });
  });

  test("an operator sees every connection, page by page", async () => {
    for (const name of ["first", "second", "third"])
      await connectDevice(app, people.owner, { fields: { client_name: name } });
    const first = Object(await people.owner.json("GET", "/admin/connections?limit=2"));
    const rest = Object(await people.owner.json("GET", "/admin/connections?limit=200&offset=2"));
    expect([first.data.length, first.has_more, rest.has_more, first.total]).toEqual([
      2,
      true,
      false,
      2 + rest.data.length,
    ]);
  });
});
