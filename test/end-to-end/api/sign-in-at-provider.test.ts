import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { OidcProvider } from "../../../src/identity/people/lazy-identity.ts";
import type { SignUpPolicy } from "../../../src/identity/people/sign-up.ts";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { startGateway } from "../../support/gateway.ts";
import { startOidcProvider, type OidcTestProvider } from "../../support/oidc-provider.ts";
import { textAt } from "./at.ts";
import { Browser, ownersPassword, startPeopled, type PeopledGateway } from "./people-browser.ts";
import { allEngines } from "./two-workspaces.ts";

const clientId = "switchyard-test";
const clientSecret = "client-secret-of-the-test";

/**
 * Path and query of a URL: the browser of the tests knows the gateway by another port than the
 * public one.
 */
const pathOf = (url: string): string => url.slice(new URL(url).origin.length);

/**
 * Goes to the provider and back; returns where the browser ends, and whether a person is signed in
 * there.
 */
async function comeBack(
  browser: Browser,
  url: string,
): Promise<{ end: string; signedIn: boolean }> {
  const atProvider = await fetch(url, { redirect: "manual" });
  const back = await browser.ask("GET", pathOf(atProvider.headers.get("location") ?? ""));
  return {
    end: back.headers.get("location") ?? "",
    signedIn: (await browser.api("GET", "/session")).status === 200,
  };
}

async function signInAt(browser: Browser): Promise<{ end: string; signedIn: boolean }> {
  const begun = await browser.ask("POST", "/api/auth/sign-in/social", {
    provider: "acme",
    callback_url: "/docs",
  });
  if (!begun.ok) throw new Error(await begun.text());
  return comeBack(browser, textAt(await begun.json(), "url"));
}

describe.each(allEngines)("OpenID Connect sign-in on %s", (_, freshUrl) => {
  let provider: OidcTestProvider;
  const gateways: PeopledGateway[] = [];
  const entry = (signUp: boolean): OidcProvider => ({
    id: "acme",
    name: "Acme",
    issuer: provider.issuer,
    clientId,
    clientSecret,
    scopes: ["openid", "email"],
    signUp,
  });
  const peopledWith = async (
    signUp: SignUpPolicy,
    providerSignUp: boolean,
  ): Promise<PeopledGateway> => {
    const peopled = await startPeopled(await freshUrl(), {
      people: { signUp, plan: "free", oidc: [entry(providerSignUp)] },
    });
    gateways.push(peopled);
    return peopled;
  };
  let peopled: PeopledGateway;
  beforeAll(async () => {
    provider = await startOidcProvider({ clientId, clientSecret });
    peopled = await peopledWith("closed", true);
  });
  beforeEach(() => {
    provider.fault = "none";
  });
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await provider.stop();
  });

  test("creates an account with its workspace and finds it again", async () => {
    provider.person = {
      sub: "new",
      email: "New@example.com",
      emailVerified: true,
      name: "New Person",
    };
    const browser = peopled.stranger();
    expect(await signInAt(browser)).toEqual({ end: "/docs", signedIn: true });
    const session = await browser.json("GET", "/session");
    expect(session).toMatchObject({
      user: { name: "New Person", email: "new@example.com", operator: false },
      workspace: { role: "owner", plan: "free" },
    });
    const again = peopled.stranger();
    expect((await signInAt(again)).signedIn).toBe(true);
    expect(textAt(await again.json("GET", "/session"), "user.id")).toBe(textAt(session, "user.id"));
    const database = peopled
      .gateway()
      .app.storage.database.withTables<{ user_accounts: { id: string } }>();
    const rows = await database.selectFrom("user_accounts").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain("access-token-of-the-test");
  });

  const faults = [
    "foreign-signature",
    "foreign-audience",
    "foreign-nonce",
    "foreign-issuer",
    "no-id-token",
  ] as const;
  test.each(faults)("is refused for an ID token with the fault %s", async (fault) => {
    provider.person = {
      sub: fault,
      email: `${fault}@example.com`,
      emailVerified: true,
      name: "Forger",
    };
    provider.fault = fault;
    const { end, signedIn } = await signInAt(peopled.stranger());
    expect([signedIn, end]).toEqual([false, expect.stringContaining("/api/auth/error?error=")]);
    const page = await peopled.stranger().ask("GET", pathOf(end));
    expect([page.status, await page.text()]).toEqual([
      400,
      expect.stringContaining("Signing in failed"),
    ]);
  });

  test("does not take over an account with the same address, and a signed-in user can link it", async () => {
    provider.person = {
      sub: "owner-there",
      email: "owner@example.com",
      emailVerified: true,
      name: "Leases to be the owner",
    };
    expect((await signInAt(peopled.stranger())).signedIn).toBe(false);
    const { owner } = peopled;
    await owner.signIn("owner@example.com", ownersPassword);
    const begun = await owner.ask("POST", "/api/auth/link-social", {
      provider: "acme",
      callback_url: "/docs",
    });
    await comeBack(owner, textAt(await begun.json(), "url"));
    const browser = peopled.stranger();
    expect((await signInAt(browser)).signedIn).toBe(true);
    expect(textAt(await browser.json("GET", "/session"), "user.name")).toBe("Olga Owner");
  });

  test("returns only to the browser that started it and only to the gateway's pages", async () => {
    provider.person = {
      sub: "state",
      email: "state@example.com",
      emailVerified: true,
      name: "State",
    };
    const [victim, attacker] = [peopled.stranger(), peopled.stranger()];
    const begun = await attacker.ask("POST", "/api/auth/sign-in/social", { provider: "acme" });
    expect((await comeBack(victim, textAt(await begun.json(), "url"))).signedIn).toBe(false);
    const elsewhere = await victim.ask("POST", "/api/auth/sign-in/social", {
      provider: "acme",
      callback_url: "https://evil.example/",
    });
    expect(elsewhere.status).toBe(403);
    expect(
      (await victim.ask("POST", "/api/auth/sign-in/social", { provider: "unknown" })).status,
    ).toBe(404);
    expect(victim.cookies.has(brand.sessionCookie)).toBe(false);
  });

  test.each([
    ["closed", "verified", false],
    ["invitation", "unverified", false],
    ["invitation", "verified", true],
    ["open", "unverified", true],
  ] as const)(
    "with sign_up %s and an address that is %s, an invited person gets an account: %p",
    async (policy, verified, signedIn) => {
      const other = await peopledWith(policy, false);
      const id = textAt(await other.owner.json("POST", "/organizations", { name: "Acme" }), "id");
      await other.owner.json("POST", `/organizations/${id}/invitations`, {
        email: "invited@example.com",
      });
      provider.person = {
        sub: "invited",
        email: "invited@example.com",
        emailVerified: verified === "verified",
        name: "Invited",
      };
      expect((await signInAt(other.stranger())).signedIn).toBe(signedIn);
      provider.person = {
        sub: "stranger",
        email: "stranger@example.com",
        emailVerified: true,
        name: "Stranger",
      };
      expect((await signInAt(other.stranger())).signedIn).toBe(policy === "open");
    },
  );

  test("creates no account before the owner account is claimed", async () => {
    const url = await freshUrl();
    const people = { signUp: "open", plan: "free", oidc: [entry(true)] } as const;
    const gateway = await startGateway({
      people,
      ...(url === undefined ? {} : { storageUrl: url }),
    });
    provider.person = {
      sub: "early",
      email: "early@example.com",
      emailVerified: true,
      name: "Early",
    };
    expect((await signInAt(new Browser(() => gateway))).signedIn).toBe(false);
    await gateway.stop();
  });
});
