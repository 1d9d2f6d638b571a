import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dayMs, hourMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { startOperatorScene, type OperatorScene } from "../admin/operator-scene.ts";
import { at, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import type { Browser } from "./people-browser.ts";
import { linkIn, startMailServer } from "./receivers.ts";
import { engines } from "./two-workspaces.ts";

const tokenOf = (url: string): string => new URL(url).searchParams.get("token") ?? "";
const another = "another long password";

describe.each(engines)("a forgotten password on %s", (_, freshUrl) => {
  const [mail, clock] = [startMailServer(), new FakeClock(Date.now() - 100 * dayMs)];
  let scene: OperatorScene;
  beforeAll(async () => {
    scene = await startOperatorScene(
      await freshUrl(),
      { mail: { url: mail.url, from: "noreply@example.com" } },
      { clock },
    );
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    mail.stop();
  });

  const sent = async (): Promise<void> => scene.gateway().app.people.recovery.idle();
  const request = (email: string): Promise<Response> =>
    scene.stranger().ask("POST", "/api/auth/request-password-reset", { email });
  const reset = (token: string, password = another): Promise<Response> =>
    scene.stranger().ask("POST", "/api/auth/reset-password", { token, new_password: password });
  const requested = async (email: string): Promise<string> => {
    await sent();
    mail.mails.length = 0;
    expect((await request(email)).status).toBe(200);
    await sent();
    return tokenOf(linkIn(mail.mails[0] ?? { from: "", to: "", text: "" }));
  };

  test("is replaced through a mailed link that works once and ends every session", async () => {
    const { browser, email, password } = await scene.person("anna");
    const token = await requested(email);
    expect(mail.mails[0]).toMatchObject({ to: email, from: "noreply@example.com" });
    expect(
      JSON.stringify(
        await scene.gateway().app.storage.database.selectFrom("user_links").selectAll().execute(),
      ),
    ).not.toContain(token);
    expect((await reset(token, "short")).status).toBe(400);
    expect((await browser.api("GET", "/session")).status).toBe(200);
    expect((await reset(token)).status).toBe(200);
    expect((await browser.api("GET", "/session")).status).toBe(401);
    expect((await reset(token)).status).toBe(403);
    expect((await browser.signIn(email, password)).status).toBe(401);
    expect((await browser.signIn(email, another)).status).toBe(200);
    expect(at(await browser.json("GET", "/session"), "user.email_verified")).toBe(true);
  });

  test("is replaced by one of several parallel requests with the same link", async () => {
    const { email } = await scene.person("bella");
    const token = await requested(email);
    const answers = await Promise.all(
      [0, 1, 2, 3].map((index) => reset(token, `${another} ${index}`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403]);
  });

  test("is not replaced by an expired, replaced or invalid link", async () => {
    const { email } = await scene.person("carl");
    const replaced = await requested(email);
    const old = await requested(email);
    expect((await reset(replaced)).status).toBe(403);
    clock.advance(hourMs + 1);
    expect((await reset(old)).status).toBe(403);
    for (const guess of ["guess", "", "%00"])
      expect([400, 403]).toContain((await reset(guess)).status);
  });

  test("responds alike for unknown and blocked accounts and mails neither", async () => {
    const { id, email } = await scene.person("dave");
    await scene.owner.json("PATCH", `/admin/users/${id}`, { blocked: true });
    await sent();
    mail.mails.length = 0;
    const answers = await Promise.all([
      request("nobody@example.com"),
      request(email),
      request("owner@example.com"),
    ]);
    const shown = await Promise.all(
      answers.map(async (answer) => [answer.status, await answer.json()]),
    );
    expect(shown).toEqual([
      [200, { requested: true }],
      [200, { requested: true }],
      [200, { requested: true }],
    ]);
    await sent();
    expect(mail.mails.map(({ to }) => to)).toEqual(["owner@example.com"]);
  });

  test("sends few mails to an address and rate-limits attempts", async () => {
    const { email } = await scene.person("emma");
    await sent();
    mail.mails.length = 0;
    const statuses: number[] = [];
    for (let times = 0; times < 12; times += 1) statuses.push((await request(email)).status);
    await sent();
    // Signing up was the first of the ten attempts that an address and an account have together.
    expect(statuses.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => 200));
    expect(statuses.at(-1)).toBe(429);
    // One of the five was the mail that confirms the address.
    expect(mail.mails.length).toBe(4);
    clock.advance(2 * hourMs);
    expect((await request(email)).status).toBe(200);
  });

  test("is set on a page without JavaScript, and links use the configured URL, not the request's host", async () => {
    const { email, password } = await scene.person("fiona");
    await sent();
    mail.mails.length = 0;
    const liar = scene.stranger();
    liar.headers = { "x-forwarded-host": "evil.example" };
    await liar.ask("POST", "/api/auth/request-password-reset", { email });
    await sent();
    const link = linkIn(mail.mails[0] ?? { from: "", to: "", text: "" });
    expect(new URL(link).origin).toBe("http://127.0.0.1");
    const browser: Browser = scene.stranger();
    const page = await browser.ask("GET", `/reset-password?token=${tokenOf(link)}`);
    expect([
      page.status,
      page.headers.get("cache-control"),
      page.headers.get("referrer-policy"),
    ]).toEqual([200, "no-store", "same-origin"]);
    expect(await page.text()).not.toContain("<script");
    const form = new URLSearchParams({ token: tokenOf(link), password: another });
    browser.origin = "https://evil.example";
    expect((await browser.ask("POST", "/reset-password", form)).status).toBe(403);
    browser.origin = "http://127.0.0.1";
    const done = await browser.ask("POST", "/reset-password", form);
    expect([done.status, done.headers.get("location")]).toEqual([303, "/sign-in?note=password"]);
    expect(await (await browser.ask("GET", "/sign-in?note=password")).text()).toContain(
      "The password is set",
    );
    expect((await browser.ask("POST", "/reset-password", form)).status).toBe(403);
    expect((await browser.signIn(email, password)).status).toBe(401);
    expect((await browser.signIn(email, another)).status).toBe(200);
  });

  test("can be replaced by a link that only an operator can create", async () => {
    const { browser, id, email } = await scene.person("gregor");
    expect((await browser.api("POST", `/admin/users/${id}/password-reset`)).status).toBe(403);
    const made = await scene.owner.json("POST", `/admin/users/${id}/password-reset`);
    expect(Date.parse(textAt(made, "expires_at"))).toBe(clock.nowMs() + dayMs);
    expect((await reset(tokenOf(textAt(made, "url")))).status).toBe(200);
    expect((await browser.signIn(email, another)).status).toBe(200);
    expect(at(await browser.json("GET", "/session"), "user.email_verified")).toBe(false);
  });

  test("an address is confirmed with a button on the page of the mailed link", async () => {
    await sent();
    mail.mails.length = 0;
    const { browser } = await scene.person("helen");
    await sent();
    const token = tokenOf(
      mail.mails.map(linkIn).find((link) => link.includes("/verify-email")) ?? "",
    );
    expect(at(await browser.json("GET", "/session"), "user.email_verified")).toBe(false);
    expect((await reset(token)).status).toBe(403);
    expect((await browser.ask("GET", `/verify-email?token=${token}`)).status).toBe(200);
    expect(at(await browser.json("GET", "/session"), "user.email_verified")).toBe(false);
    expect(
      (await browser.ask("POST", "/verify-email", new URLSearchParams({ token }))).status,
    ).toBe(303);
    expect(at(await browser.json("GET", "/session"), "user.email_verified")).toBe(true);
    expect((await browser.ask("POST", "/api/auth/verify-email", { token })).status).toBe(403);
    expect((await browser.ask("POST", "/api/auth/send-verification-email")).status).toBe(200);
  });
});

test("without a mail server no reset mail is offered, and operators can still create a link", async () => {
  const scene = await startOperatorScene(undefined);
  const { id, email, browser } = await scene.person("ivan");
  expect(at(await (await browser.ask("GET", "/api/auth/methods")).json(), "password_reset")).toBe(
    false,
  );
  for (const each of [email, "nobody@example.com"]) {
    const refused = await errorOf(
      await scene.stranger().ask("POST", "/api/auth/request-password-reset", { email: each }),
    );
    expect(refused).toMatchObject({ status: 501, code: "not_configured" });
  }
  const url = textAt(
    await (await scene.automation("POST", `/admin/users/${id}/password-reset`)).json(),
    "url",
  );
  const form = new URLSearchParams({ token: tokenOf(url), password: another });
  expect((await scene.stranger().ask("POST", "/reset-password", form)).status).toBe(303);
  expect((await browser.signIn(email, another)).status).toBe(200);
  await scene.stop();
});
