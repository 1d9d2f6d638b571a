import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { SignUpPolicy } from "../../../src/identity/people/sign-up.ts";
import { dayMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { Browser, startPeopled } from "./people-browser.ts";
import { engines } from "./two-workspaces.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

const person = {
  name: "Olga Owner",
  email: "owner@example.com",
  password: "a password of some length",
};

const signUp = (gateway: TestGateway, body: object): Promise<Response> =>
  new Browser(() => gateway).ask("POST", "/api/auth/sign-up", { ...person, ...body });

const rowsOf = ({ app }: TestGateway, table: "users" | "owner_claims"): Promise<unknown[]> =>
  withTables<Record<"users" | "owner_claims", { id: string }>>(app.storage.database)
    .selectFrom(table)
    .selectAll()
    .execute();

async function tokenOf(gateway: TestGateway): Promise<string> {
  const token = await gateway.app.issueClaim();
  if (token === undefined) throw new Error("the owner account is claimed");
  return token;
}

describe.each(engines)("the owner account on %s", (_, freshUrl) => {
  let gateway: TestGateway;
  const clock = new FakeClock(Date.parse("2026-11-21T12:00:00Z"));
  beforeAll(async () => {
    const url = await freshUrl();
    gateway = await startGateway(url === undefined ? {} : { storageUrl: url }, { clock });
  });
  afterAll(() => gateway.stop());

  test("does not exist before it is claimed, and no other account can be created", async () => {
    const answer = await (await fetch(`${gateway.origin}/api/auth/methods`)).json();
    expect(answer).toEqual({
      claimed: false,
      sign_up: "invitation",
      password: true,
      passkey: true,
      password_reset: false,
      oidc: [],
    });
    for (const body of [{}, { claim_token: "guess" }, { invitation_token: "guess" }]) {
      expect((await signUp(gateway, body)).status).toBe(403);
    }
    expect(await rowsOf(gateway, "users")).toEqual([]);
  });

  test("can be claimed only with the newest link and within a day", async () => {
    const replaced = await tokenOf(gateway);
    const expired = await tokenOf(gateway);
    expect((await signUp(gateway, { claim_token: replaced })).status).toBe(403);
    clock.advance(dayMs + 1);
    expect((await signUp(gateway, { claim_token: expired })).status).toBe(403);
    const page = await fetch(`${gateway.origin}/claim?token=${expired}`);
    expect([page.status, await page.text()]).toEqual([
      404,
      expect.stringContaining("does not work"),
    ]);
  });

  test("can be claimed once under parallel claims, and the link is not stored in plain text", async () => {
    const token = await tokenOf(gateway);
    expect(JSON.stringify(await rowsOf(gateway, "owner_claims"))).not.toContain(token);
    const claim = (index: number): Promise<Response> =>
      signUp(gateway, { claim_token: token, email: `owner${index}@example.com` });
    const answers = await Promise.all([0, 1, 2, 3, 4].map(claim));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403, 403]);
    expect((await signUp(gateway, { claim_token: token, email: "late@example.com" })).status).toBe(
      403,
    );
    expect(await gateway.app.issueClaim()).toBeUndefined();
  });
});

describe("claiming the owner account", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  test("works on a page without JavaScript and takes over the first workspace", async () => {
    const token = await tokenOf(gateway);
    const browser = new Browser(() => gateway);
    const page = await browser.ask("GET", `/claim?token=${token}`);
    expect(Object.fromEntries(page.headers)).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "same-origin",
      "content-security-policy": expect.stringMatching(
        new RegExp(
          "^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self' data:; font-src 'self'; " +
            "form-action 'self'; frame-ancestors 'none'; base-uri 'none'$",
        ),
      ),
    });
    const html = await page.text();
    const style = /<style>([^]*)<\/style>/.exec(html)?.[1] ?? "";
    expect(page.headers.get("content-security-policy")).toContain(
      new Bun.CryptoHasher("sha256").update(style).digest("base64"),
    );
    expect(html).not.toContain("<script");
    expect(html).toContain("<title>Claim the owner account - Switchyard</title>");
    expect(html).toContain("<h1>Claim the owner account</h1>");
    const form = new URLSearchParams({ ...person, token });
    browser.origin = "https://evil.example";
    expect((await browser.ask("POST", "/claim", form)).status).toBe(403);
    browser.origin = "http://127.0.0.1";
    const done = await browser.ask("POST", "/claim", form);
    expect([done.status, done.headers.get("location")]).toEqual([303, "/"]);
    expect(await (await browser.ask("GET", "/")).text()).toContain("Connect a model provider");
    expect(await (await new Browser(() => gateway).ask("GET", "/claim")).text()).toContain(
      "This service has an owner",
    );
    const session = await browser.json("GET", "/session");
    expect(session).toMatchObject({
      user: { operator: true, email: person.email },
      workspace: { name: "First workspace", role: "owner" },
    });
    expect(
      listAt(await browser.json("GET", "/keys"), "data").map((key) => at(key, "name")),
    ).toEqual(["bootstrap"]);
    expect(await browser.json("GET", "/credits")).toMatchObject({ balance: 10 });
    expect((await gateway.get("/auth/key", { authorization: `Bearer ${testLlmKey}` })).status).toBe(
      200,
    );
  });
});

describe("after the claim", () => {
  let stop: (() => Promise<void>) | undefined;
  afterEach(async () => {
    await stop?.();
  });

  const rows: [policy: SignUpPolicy, alone: number, invited: number][] = [
    ["closed", 403, 403],
    ["invitation", 403, 200],
    ["open", 200, 200],
  ];
  test.each(rows)(
    "with sign_up %s, strangers get %d and invited people %d",
    async (policy, alone, invited) => {
      const peopled = await startPeopled(undefined, {
        people: { signUp: policy, plan: "payg", oidc: [] },
      });
      stop = () => peopled.stop();
      expect((await signUp(peopled.gateway(), { email: "stranger@example.com" })).status).toBe(
        alone,
      );
      const id = textAt(await peopled.owner.json("POST", "/organizations", { name: "Acme" }), "id");
      const invitation = await peopled.owner.json("POST", `/organizations/${id}/invitations`, {
        email: "guest@example.com",
      });
      const token = new URL(String(at(invitation, "url"))).searchParams.get("token");
      const joined = await signUp(peopled.gateway(), {
        email: "guest@example.com",
        invitation_token: token,
      });
      expect(joined.status).toBe(invited);
      if (alone !== 200) return;
      const stranger = peopled.stranger();
      await stranger.signIn("stranger@example.com", person.password);
      expect(await stranger.json("GET", "/session")).toMatchObject({
        user: { operator: false },
        workspace: { plan: "payg", role: "owner" },
      });
      expect((await signUp(peopled.gateway(), { email: "Stranger@example.com" })).status).toBe(409);
    },
  );
});
