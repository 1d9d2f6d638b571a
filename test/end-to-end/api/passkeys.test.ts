import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Authenticator } from "../../support/authenticator.ts";
import { listAt, textAt } from "./at.ts";
import { publicOrigin, startPeopled, type Browser, type PeopledGateway } from "./people-browser.ts";
import { allEngines } from "./two-workspaces.ts";

const base = "/api/auth/passkey";
const rpId = "127.0.0.1";

async function challengeFor(browser: Browser, path: string): Promise<string> {
  return textAt(await (await browser.ask("GET", `${base}/${path}`)).json(), "challenge");
}

async function add(
  browser: Browser,
  authenticator: Authenticator,
  origin = publicOrigin,
): Promise<Response> {
  const challenge = await challengeFor(browser, "generate-register-options");
  const response = authenticator.register({ challenge, rpId, origin });
  return browser.ask("POST", `${base}/verify-registration`, { response, name: "Laptop" });
}

async function signIn(
  browser: Browser,
  authenticator: Authenticator,
  changes: { origin?: string; rpId?: string } = {},
): Promise<Response> {
  const challenge = await challengeFor(browser, "generate-authenticate-options");
  const response = authenticator.authenticate({
    challenge,
    rpId,
    origin: publicOrigin,
    ...changes,
  });
  return browser.ask("POST", `${base}/verify-authentication`, { response });
}

describe.each(allEngines)("passkeys on %s", (_, freshUrl) => {
  let peopled: PeopledGateway;
  const laptop = new Authenticator();
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl());
  });
  afterAll(() => peopled.stop());

  test("can be added by a signed-in user and only from the gateway's own origin", async () => {
    expect((await peopled.stranger().ask("GET", `${base}/generate-register-options`)).status).toBe(
      401,
    );
    expect((await add(peopled.owner, new Authenticator(), "https://evil.example")).status).toBe(
      400,
    );
    const added = await add(peopled.owner, laptop);
    expect([added.status, await added.json()]).toEqual([
      200,
      expect.objectContaining({ object: "passkey", name: "Laptop" }),
    ]);
    const list = await (await peopled.owner.ask("GET", `${base}/list-user-passkeys`)).json();
    expect(listAt(list, "data")).toHaveLength(1);
  });

  test("sign in without a password", async () => {
    const browser = peopled.stranger();
    expect((await signIn(browser, laptop)).status).toBe(200);
    expect(textAt(await browser.json("GET", "/session"), "user.email")).toBe("owner@example.com");
  });

  test.each([
    ["of another user", new Authenticator(), {}],
    ["from another origin", laptop, { origin: "https://evil.example" }],
    ["for another service", laptop, { rpId: "evil.example" }],
  ])("%s are refused", async (_name, authenticator, changes) => {
    const browser = peopled.stranger();
    expect([400, 401]).toContain((await signIn(browser, authenticator, changes)).status);
    expect((await browser.api("GET", "/session")).status).toBe(401);
  });

  test("accept each challenge once", async () => {
    const browser = peopled.stranger();
    const challenge = await challengeFor(browser, "generate-authenticate-options");
    const asked = new Map(browser.cookies);
    const response = laptop.authenticate({ challenge, rpId, origin: publicOrigin });
    expect((await browser.ask("POST", `${base}/verify-authentication`, { response })).status).toBe(
      200,
    );
    const replaying = peopled.stranger();
    for (const [name, value] of asked) replaying.cookies.set(name, value);
    expect((await replaying.ask("POST", `${base}/verify-authentication`, { response })).ok).toBe(
      false,
    );
  });

  test("that were deleted no longer sign in", async () => {
    const list = await (await peopled.owner.ask("GET", `${base}/list-user-passkeys`)).json();
    const id = textAt(list, "data.0.id");
    expect((await peopled.owner.ask("POST", `${base}/delete-passkey`, { id })).status).toBe(200);
    const browser = peopled.stranger();
    expect((await signIn(browser, laptop)).ok).toBe(false);
  });
});
