import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import {
  type Browser,
  ownersPassword,
  startPeopled,
  type PeopledGateway,
} from "./people-browser.ts";
import { engines } from "./two-workspaces.ts";

describe.each(engines)("sessions on %s", (_, freshUrl) => {
  let peopled: PeopledGateway;
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl());
  });
  afterAll(() => peopled.stop());

  const signedIn = async (): Promise<Browser> => {
    const browser = peopled.stranger();
    expect((await browser.signIn("Owner@Example.com", ownersPassword)).status).toBe(200);
    return browser;
  };

  test("start with the right password and report the user and the workspace", async () => {
    const browser = peopled.stranger();
    const answer = await browser.signIn("owner@example.com", ownersPassword);
    const [cookie = ""] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/^__session=[^;]+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/);
    const text = await answer.text();
    expect(text).not.toContain(
      decodeURIComponent(browser.cookies.get(brand.sessionCookie) ?? "").split(".")[0] ?? "",
    );
    expect(await browser.json("GET", "/session")).toMatchObject({
      object: "session",
      user: { name: "Olga Owner", email: "owner@example.com", operator: true },
      workspace: { role: "owner", plan: "enterprise", organization_id: null },
    });
  });

  test.each([
    ["a wrong password", "owner@example.com", "not the password", 401],
    ["an unknown address", "nobody@example.com", ownersPassword, 401],
    ["an invalid address", "owner", ownersPassword, 400],
  ])("do not start with %s", async (_name, email, password, status) => {
    const browser = peopled.stranger();
    expect((await browser.signIn(email, password)).status).toBe(status);
    expect(browser.cookies.size).toBe(0);
    expect((await browser.api("GET", "/session")).status).toBe(401);
  });

  test("end when the user signs out", async () => {
    const browser = await signedIn();
    const cookie = browser.cookies.get(brand.sessionCookie) ?? "";
    expect((await browser.ask("POST", "/api/auth/sign-out")).status).toBe(200);
    expect(browser.cookies.has(brand.sessionCookie)).toBe(false);
    browser.cookies.set(brand.sessionCookie, cookie);
    expect((await browser.api("GET", "/session")).status).toBe(401);
  });

  test("are listed, and a revoked one is refused at the next request", async () => {
    const [here, elsewhere] = [await signedIn(), await signedIn()];
    elsewhere.headers = { "user-agent": "elsewhere" };
    const other = textAt(await elsewhere.json("GET", "/session"), "id");
    const listed = listAt(await here.json("GET", "/sessions"), "data");
    expect(listed.filter((entry) => at(entry, "current") === true)).toHaveLength(1);
    expect(listed.find((entry) => at(entry, "id") === other)).toMatchObject({
      object: "session",
      address: "127.0.0.1",
      current: false,
    });
    expect(JSON.stringify(listed)).not.toContain(
      decodeURIComponent(elsewhere.cookies.get(brand.sessionCookie) ?? "").split(".")[0] ?? "",
    );
    expect((await elsewhere.api("GET", "/keys")).status).toBe(200);
    expect(await here.json("DELETE", `/sessions/${other}`)).toEqual({ deleted: true, id: other });
    expect((await elsewhere.api("GET", "/keys")).status).toBe(401);
    expect((await here.api("DELETE", `/sessions/${other}`)).status).toBe(404);
    expect((await here.api("GET", "/keys")).status).toBe(200);
  });

  test("can all be ended except the current one", async () => {
    const [here, elsewhere] = [await signedIn(), await signedIn()];
    expect(at(await here.json("DELETE", "/sessions"), "count")).toBeGreaterThan(0);
    expect((await elsewhere.api("GET", "/session")).status).toBe(401);
    expect(listAt(await here.json("GET", "/sessions"), "data")).toHaveLength(1);
  });

  test("survive a restart", async () => {
    const browser = await signedIn();
    if (peopled.gateway().app.storage.kind === "postgres") await peopled.restart();
    expect((await browser.api("GET", "/session")).status).toBe(200);
  });

  test("on other devices end when the password is changed", async () => {
    const [here, elsewhere] = [await signedIn(), await signedIn()];
    const before = here.cookies.get(brand.sessionCookie);
    const change = (current: string, wanted: string): Promise<Response> =>
      here.ask("POST", "/api/auth/change-password", {
        current_password: current,
        new_password: wanted,
      });
    expect(await errorOf(await change("wrong wrong wrong", "another long one"))).toMatchObject({
      status: 400,
      param: "current_password",
    });
    expect((await change(ownersPassword, "another long one")).status).toBe(200);
    expect(here.cookies.get(brand.sessionCookie)).not.toBe(before ?? "");
    expect((await elsewhere.api("GET", "/session")).status).toBe(401);
    expect((await here.api("GET", "/session")).status).toBe(200);
    expect((await change("another long one", ownersPassword)).status).toBe(200);
  });
});

describe("a session's cookie", () => {
  let peopled: PeopledGateway;
  beforeAll(async () => {
    peopled = await startPeopled(undefined);
  });
  afterAll(() => peopled.stop());

  test("is invalid without the gateway's signature", async () => {
    const { owner } = peopled;
    const cookie = decodeURIComponent(owner.cookies.get(brand.sessionCookie) ?? "");
    const [token = "", signature = ""] = cookie.split(".");
    const forgeries = [
      token,
      `${token}.`,
      `${token}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`,
      `${token}x.${signature}`,
      `.${signature}`,
      "%E0%A4%A",
    ];
    for (const forged of forgeries) {
      const browser = peopled.stranger();
      browser.cookies.set(brand.sessionCookie, forged);
      expect([forged, (await browser.api("GET", "/session")).status]).toEqual([forged, 401]);
    }
  });

  test("is Secure when the public URL is https", async () => {
    const secure = await startPeopled(undefined, {
      publicUrl: () => "https://gateway.example.com",
    });
    const browser = secure.stranger();
    const answer = await browser.signIn("owner@example.com", ownersPassword);
    expect(answer.headers.getSetCookie()[0]).toMatch(
      /^__session=[^;]+; Max-Age=604800; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    expect((await browser.api("POST", "/organizations", { name: "Acme" })).status).toBe(200);
    browser.origin = "http://gateway.example.com";
    expect((await browser.api("POST", "/organizations", { name: "Acme" })).status).toBe(403);
    await secure.stop();
  });

  test("is given to programs that are not browsers", async () => {
    const program = peopled.stranger();
    program.origin = null;
    expect((await program.signIn("owner@example.com", ownersPassword)).status).toBe(200);
    expect((await program.api("GET", "/keys")).status).toBe(200);
  });

  test("is ignored when the request has an authorization header, even an invalid one", async () => {
    peopled.owner.headers = { authorization: "Bearer ak_live_unknown" };
    expect((await peopled.owner.api("GET", "/keys")).status).toBe(401);
    peopled.owner.headers = {};
    expect((await peopled.owner.api("GET", "/keys")).status).toBe(200);
  });
});

describe("a browser request with the origin of", () => {
  let peopled: PeopledGateway;
  beforeAll(async () => {
    peopled = await startPeopled(undefined);
  });
  afterAll(() => peopled.stop());

  const body = { name: "forged" };
  const rows: [name: string, origin: string | null, site: string | undefined, status: number][] = [
    ["the gateway's own page", "http://127.0.0.1", "same-origin", 200],
    [
      "the gateway's own page in a browser without Sec-Fetch-Site",
      "http://127.0.0.1",
      undefined,
      200,
    ],
    ["another site", "https://evil.example", "cross-site", 403],
    ["another site in a browser without Sec-Fetch-Site", "https://evil.example", undefined, 403],
    ["a sibling subdomain", "http://other.127.0.0.1", "same-site", 403],
    ["another port", "http://127.0.0.1:81", "same-site", 403],
    ["a sandboxed frame", "null", "cross-site", 403],
    ["a sandboxed frame in a browser without Sec-Fetch-Site", "null", undefined, 403],
    ["no origin and no Sec-Fetch-Site", null, undefined, 403],
    ["a typed URL", null, "none", 403],
  ];
  test.each(rows)("%s", async (_, origin, site, status) => {
    const { owner } = peopled;
    owner.origin = origin;
    owner.headers = site === undefined ? {} : { "sec-fetch-site": site };
    const answers = [
      await owner.api("POST", "/keys", body),
      await owner.api("POST", "/organizations", body),
      await owner.api("PATCH", "/session", body),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([status, status, status]);
    expect((await owner.signIn("owner@example.com", ownersPassword)).status).toBe(status);
    expect((await owner.api("GET", "/keys")).status).toBe(200);
  });

  const hosts: [name: string, origin: string, host: string, status: number][] = [
    [
      "the gateway's own page under another host name",
      "http://gateway.lan:8787",
      "gateway.lan:8787",
      200,
    ],
    [
      "the gateway's own page under another host name by TLS",
      "https://gateway.lan",
      "GATEWAY.lan",
      200,
    ],
    ["a host name other than the request's", "http://other.lan:8787", "gateway.lan:8787", 403],
    ["another port of the request's host name", "http://gateway.lan", "gateway.lan:8787", 403],
    [
      "the request's host name in an extension's scheme",
      "chrome-extension://gateway.lan",
      "gateway.lan",
      403,
    ],
    ["the public host name in another scheme", "https://127.0.0.1", "127.0.0.1", 403],
  ];
  test.each(hosts)("%s", async (_, origin, host, status) => {
    const { owner } = peopled;
    owner.origin = origin;
    owner.headers = { host };
    expect((await owner.api("POST", "/keys", body)).status).toBe(status);
    owner.headers = { host, "sec-fetch-site": "cross-site" };
    expect((await owner.api("POST", "/keys", body)).status).toBe(403);
  });
});

describe("guessing passwords", () => {
  test("is stopped after ten attempts at an account, and the owner can sign in from elsewhere", async () => {
    const peopled = await startPeopled(undefined, { trustProxy: true });
    const from = (address: string): Browser => {
      const browser = peopled.stranger();
      browser.headers = { "x-forwarded-for": address };
      return browser;
    };
    const statuses: number[] = [];
    for (let tries = 0; tries < 11; tries += 1) {
      statuses.push(
        (await from("198.51.100.7").signIn("owner@example.com", `guess ${tries} guess`)).status,
      );
    }
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429]);
    const refused = await from("198.51.100.7").signIn("owner@example.com", ownersPassword);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(800);
    expect((await from("203.0.113.9").signIn("owner@example.com", ownersPassword)).status).toBe(
      200,
    );
    await peopled.stop();
  });

  test("in parallel is counted exactly", async () => {
    const peopled = await startPeopled(undefined, { trustProxy: true });
    const answers = await Promise.all(
      Array.from({ length: 25 }, () => {
        const browser = peopled.stranger();
        browser.headers = { "x-forwarded-for": "198.51.100.8" };
        return browser.signIn("owner@example.com", "guess guess guess");
      }),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
    await peopled.stop();
  });
});
