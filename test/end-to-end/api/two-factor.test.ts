import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { codeOf, wrongCodeOf } from "../../support/authenticator-app.ts";
import { at, listAt, textAt } from "./at.ts";
import {
  type Browser,
  ownersPassword,
  startPeopled,
  type PeopledGateway,
} from "./people-browser.ts";
import { allEngines } from "./two-workspaces.ts";

const email = "owner@example.com";

describe.each(allEngines)("a second factor on %s", (_, freshUrl) => {
  let peopled: PeopledGateway;
  let uri: string;
  let backupCodes: string[];
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl());
  });
  afterAll(() => peopled.stop());

  const post = async (
    browser: Browser,
    path: string,
    body: unknown,
  ): Promise<{ status: number; answer: unknown }> => {
    const response = await browser.ask("POST", `/api/auth${path}`, body);
    return { status: response.status, answer: await response.json() };
  };
  const withPassword = async (): Promise<Browser> => {
    const browser = peopled.stranger();
    const { status, answer } = await post(browser, "/sign-in/email", {
      email,
      password: ownersPassword,
    });
    expect([status, answer]).toEqual([
      200,
      { two_factor_required: true, methods: ["totp", "backup_code"] },
    ]);
    return browser;
  };
  const isSignedIn = async (browser: Browser): Promise<boolean> =>
    (await browser.api("GET", "/session")).status === 200;

  test("is set up with the password and enabled once a code of the authenticator app is confirmed", async () => {
    const { owner } = peopled;
    const refused = await post(owner, "/two-factor/enable", { password: "not the password" });
    expect([refused.status, at(refused.answer, "error.param")]).toEqual([400, "password"]);
    const begun = await post(owner, "/two-factor/enable", { password: ownersPassword });
    expect(begun.status).toBe(200);
    uri = textAt(begun.answer, "totp_uri");
    backupCodes = listAt(begun.answer, "backup_codes").map(String);
    expect([new URL(uri).protocol, backupCodes.length]).toEqual(["otpauth:", 10]);
    const unconfirmed = peopled.stranger();
    expect((await unconfirmed.signIn(email, ownersPassword)).status).toBe(200);
    expect(await isSignedIn(unconfirmed)).toBe(true);
    expect(
      (await post(owner, "/two-factor/confirm", { code: wrongCodeOf(uri, Date.now()) })).status,
    ).toBe(401);
    const confirmed = await post(owner, "/two-factor/confirm", { code: codeOf(uri, Date.now()) });
    expect(confirmed).toEqual({ status: 200, answer: { two_factor: true } });
    expect(await isSignedIn(owner)).toBe(true);
    const rows = await peopled
      .gateway()
      .app.storage.database.withTables<{ two_factors: { secret: string } }>()
      .selectFrom("two_factors")
      .selectAll()
      .execute();
    expect(JSON.stringify(rows)).not.toContain(backupCodes[0] ?? "");
  });

  test("is required after the password, and a code works once", async () => {
    const browser = await withPassword();
    expect(await isSignedIn(browser)).toBe(false);
    expect(
      (await post(browser, "/sign-in/two-factor", { code: wrongCodeOf(uri, Date.now()) })).status,
    ).toBe(401);
    expect(await isSignedIn(browser)).toBe(false);
    const again = await withPassword();
    const code = codeOf(uri, Date.now());
    expect(await post(browser, "/sign-in/two-factor", { code })).toMatchObject({
      status: 200,
      answer: { user: { email } },
    });
    expect(await isSignedIn(browser)).toBe(true);
    expect((await post(again, "/sign-in/two-factor", { code })).status).toBe(401);
    expect(await isSignedIn(again)).toBe(false);
  });

  test("is refused without the password first", async () => {
    const code = codeOf(uri, Date.now() + 30_000);
    expect((await post(peopled.stranger(), "/sign-in/two-factor", { code })).status).toBe(401);
    expect((await post(peopled.owner, "/sign-in/two-factor", { code })).status).toBe(401);
    expect((await post(peopled.stranger(), "/sign-in/two-factor", {})).status).toBe(400);
  });

  test("can be a backup code, each once, and new codes replace the old ones", async () => {
    const [one = "", other = ""] = backupCodes;
    const [first, second] = [await withPassword(), await withPassword()];
    expect((await post(first, "/sign-in/two-factor", { backup_code: one })).status).toBe(200);
    expect(await isSignedIn(first)).toBe(true);
    expect((await post(second, "/sign-in/two-factor", { backup_code: one })).status).toBe(401);
    const renewed = await post(peopled.owner, "/two-factor/backup-codes", {
      password: ownersPassword,
    });
    expect(listAt(renewed.answer, "backup_codes")).toHaveLength(10);
    expect((await post(second, "/sign-in/two-factor", { backup_code: other })).status).toBe(401);
    const [fresh] = listAt(renewed.answer, "backup_codes");
    expect((await post(second, "/sign-in/two-factor", { backup_code: fresh })).status).toBe(200);
  });

  test("is in the audit log with its outcome", async () => {
    const entries = listAt(await peopled.owner.json("GET", "/security/audit?limit=200"), "data");
    const outcomes = (action: string) =>
      new Set(
        entries
          .filter((entry) => at(entry, "action") === action)
          .map((entry) => at(entry, "status")),
      );
    expect(outcomes("sign-in: code of an app")).toEqual(new Set([200, 401]));
    expect(outcomes("sign-in: backup code")).toEqual(new Set([200, 401]));
  });

  test("is required of members by an owner who has one, from their next request on", async () => {
    const { owner } = peopled;
    const made = await owner.json("POST", "/organizations", { name: "Acme" });
    const [id, workspaceId] = [textAt(made, "id"), textAt(made, "workspace_id")];
    const admin = peopled.stranger();
    const invited = await owner.json("POST", `/organizations/${id}/invitations`, {
      email: "admin@example.com",
      role: "admin",
    });
    const joined = await admin.ask("POST", "/api/auth/sign-up", {
      name: "Adam Admin",
      email: "admin@example.com",
      password: "the admin's long password",
      invitation_token: new URL(textAt(invited, "url")).searchParams.get("token"),
    });
    expect(joined.status).toBe(200);
    await admin.json("PATCH", "/session", { workspace_id: workspaceId });
    const require = (browser: Browser, required: boolean): Promise<Response> =>
      browser.api("PATCH", `/organizations/${id}`, { second_factor_required: required });
    expect((await require(admin, true)).status).toBe(403);
    expect((await require(peopled.stranger(), true)).status).toBe(401);
    expect((await require(owner, true)).status).toBe(200);
    const members = await owner.json("GET", `/organizations/${id}/members`);
    expect(listAt(members, "data").map((member) => at(member, "second_factor"))).toEqual([
      true,
      false,
    ]);
    const outside = await admin.json("GET", "/session");
    expect(at(outside, "barred_from")).toBe("Acme");
    expect(at(outside, "workspace.id")).not.toBe(workspaceId);
    const entering = await admin.api("PATCH", "/session", { workspace_id: workspaceId });
    expect([entering.status, at(await entering.json(), "error.metadata.reason")]).toEqual([
      403,
      "second_factor_required",
    ]);
    const begun = await post(admin, "/two-factor/enable", {
      password: "the admin's long password",
    });
    const code = codeOf(textAt(begun.answer, "totp_uri"), Date.now());
    expect((await post(admin, "/two-factor/confirm", { code })).status).toBe(200);
    await admin.json("PATCH", "/session", { workspace_id: workspaceId });
    const inside = await admin.json("GET", "/session");
    expect([at(inside, "barred_from"), at(inside, "workspace.id")]).toEqual([null, workspaceId]);
    const audit = listAt(await admin.json("GET", "/security/audit?limit=50"), "data");
    expect(audit.map((entry) => textAt(entry, "action"))).toContain("PATCH /organizations/:id");
    expect((await require(owner, false)).status).toBe(200);
  });

  test("is disabled with the password", async () => {
    expect(
      (await post(peopled.owner, "/two-factor/disable", { password: "not the password" })).status,
    ).toBe(400);
    const ended = await post(peopled.owner, "/two-factor/disable", { password: ownersPassword });
    expect(ended).toEqual({ status: 200, answer: { two_factor: false } });
    const browser = peopled.stranger();
    expect((await browser.signIn(email, ownersPassword)).status).toBe(200);
    expect(await isSignedIn(browser)).toBe(true);
  });

  test("can be disabled by an operator, with an audit entry, and sessions continue", async () => {
    const { owner } = peopled;
    const userId = textAt(await owner.json("GET", "/session"), "user.id");
    const begun = await post(owner, "/two-factor/enable", { password: ownersPassword });
    await post(owner, "/two-factor/confirm", {
      code: codeOf(textAt(begun.answer, "totp_uri"), Date.now()),
    });
    await withPassword();
    expect(await owner.json("DELETE", `/admin/users/${userId}/two-factor`)).toEqual({
      deleted: true,
      id: userId,
    });
    expect(listAt(await owner.json("GET", "/security/audit?limit=1"), "data")[0]).toMatchObject({
      action: "DELETE /admin/users/:id/two-factor",
      target: userId,
      outcome: "done",
      actor: { kind: "user", label: email },
    });
    expect(await isSignedIn(owner)).toBe(true);
    const browser = peopled.stranger();
    expect((await browser.signIn(email, ownersPassword)).status).toBe(200);
    expect(await isSignedIn(browser)).toBe(true);
    expect((await owner.api("DELETE", `/admin/users/${userId}/two-factor`)).status).toBe(404);
  });
});
