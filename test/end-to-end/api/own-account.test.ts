import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { at, listAt, textAt } from "./at.ts";
import {
  type Browser,
  ownersPassword,
  startPeopled,
  type PeopledGateway,
} from "./people-browser.ts";
import { linkIn, startMailServer } from "./receivers.ts";
import { engines } from "./two-workspaces.ts";

describe.each(engines)("a user's own account on %s", (_, freshUrl) => {
  const mail = startMailServer();
  let peopled: PeopledGateway;
  let organizationId: string;
  let workspaceId: string;
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl(), {
      mail: { url: mail.url, from: "noreply@example.com" },
      trustProxy: true,
    });
    const organization = await peopled.owner.json("POST", "/organizations", { name: "Acme" });
    [organizationId, workspaceId] = [
      textAt(organization, "id"),
      textAt(organization, "workspace_id"),
    ];
  });
  afterAll(async () => {
    await peopled.stop();
    mail.stop();
  });

  const person = (email: string): Promise<Browser> =>
    peopled.invited(organizationId, { email, role: "admin" });
  const status = async (asked: Promise<Response>): Promise<number> => (await asked).status;
  const mailed = async (to: string, from: number): Promise<string> => {
    await peopled.gateway().app.people.recovery.idle();
    return (
      mail.mails
        .slice(from)
        .filter((each) => each.to === to)
        .map(linkIn)
        .at(-1) ?? ""
    );
  };

  test("ends a change of its address that waits for confirmation with a new password", async () => {
    const browser = await person("reset@example.com");
    await peopled.gateway().app.people.recovery.idle();
    const sent = mail.mails.length;
    const password = "password of reset@example.com";
    const change = { new_email: "thief@example.com", password };
    expect(await status(browser.ask("POST", "/api/auth/change-email", change))).toBe(200);
    const tokenOf = (link: string): string => new URL(link).searchParams.get("token") ?? "";
    const changing = tokenOf(await mailed("thief@example.com", sent));
    const ask = (path: string, body: object): Promise<number> =>
      status(peopled.stranger().ask("POST", `/api/auth/${path}`, body));
    expect(await ask("request-password-reset", { email: "reset@example.com" })).toBe(200);
    const token = tokenOf(await mailed("reset@example.com", sent));
    expect(await ask("reset-password", { token, new_password: "another one of theirs" })).toBe(200);
    expect(await ask("verify-email", { token: changing })).toBe(403);
  });

  test("ends it with a password that is changed in a session, too", async () => {
    const browser = await person("changed@example.com");
    await peopled.gateway().app.people.recovery.idle();
    const sent = mail.mails.length;
    const password = "password of changed@example.com";
    const change = { new_email: "thief2@example.com", password };
    expect(await status(browser.ask("POST", "/api/auth/change-email", change))).toBe(200);
    const link = await mailed("thief2@example.com", sent);
    const passwords = { current_password: password, new_password: "another one of theirs" };
    expect(await status(browser.ask("POST", "/api/auth/change-password", passwords))).toBe(200);
    const token = new URL(link).searchParams.get("token");
    expect(await status(peopled.stranger().ask("POST", "/api/auth/verify-email", { token }))).toBe(
      403,
    );
  });

  test("changes its address only after confirmation and does not reveal whether an address is taken", async () => {
    const browser = await person("old@example.com");
    const password = "password of old@example.com";
    await peopled.gateway().app.people.recovery.idle();
    const sent = mail.mails.length;
    const change = (email: string, secret = password): Promise<Response> =>
      browser.ask("POST", "/api/auth/change-email", { new_email: email, password: secret });
    expect(await status(change("new@example.com", "not the password"))).toBe(400);
    const answers = await Promise.all([change("new@example.com"), change("owner@example.com")]);
    expect(await Promise.all(answers.map((each) => each.json()))).toEqual([
      { requested: true },
      { requested: true },
    ]);
    const link = await mailed("new@example.com", sent);
    expect(await mailed("owner@example.com", sent)).toBe("");
    expect(
      mail.mails
        .slice(sent)
        .map(({ to }) => to)
        .sort(),
    ).toEqual(["new@example.com", "owner@example.com"]);
    expect(await status(peopled.stranger().signIn("new@example.com", password))).toBe(401);
    const token = new URL(link).searchParams.get("token");
    expect(await status(peopled.stranger().ask("POST", "/api/auth/verify-email", { token }))).toBe(
      200,
    );
    expect(await status(peopled.stranger().ask("POST", "/api/auth/verify-email", { token }))).toBe(
      403,
    );
    expect(at(await browser.json("GET", "/session"), "user")).toMatchObject({
      email: "new@example.com",
      email_verified: true,
    });
    expect(await status(peopled.stranger().signIn("new@example.com", password))).toBe(200);
    expect(await status(peopled.stranger().signIn("old@example.com", password))).toBe(401);
    await peopled.gateway().app.people.recovery.idle();
    expect(mail.mails.at(-1)?.to).toBe("old@example.com");
  });

  test("keeps at least one sign-in method when others are unlinked", async () => {
    const browser = await person("ways@example.com");
    const [way] = listAt(await browser.json("GET", "/session/sign-in-methods"), "data");
    expect(way).toMatchObject({ object: "sign_in_method", type: "password", provider: null });
    const id = textAt(way, "id");
    const passkeys = peopled
      .gateway()
      .app.storage.database.withTables<{ passkeys: Record<string, string | number> }>();
    const { user } = (await browser.json("GET", "/session")) as { user: { id: string } };
    expect(await status(browser.api("DELETE", `/session/sign-in-methods/${id}`))).toBe(409);
    await passkeys
      .insertInto("passkeys")
      .values({
        id: "psk_second",
        public_key: "-",
        user_id: user.id,
        credential_id: "second",
        counter: 0,
        device_type: "x",
        backed_up: 0,
      })
      .execute();
    expect(await status(peopled.owner.api("DELETE", "/session/sign-in-methods/psk_second"))).toBe(
      404,
    );
    const both = await Promise.all(
      [id, "psk_second"].map((each) =>
        status(browser.api("DELETE", `/session/sign-in-methods/${each}`)),
      ),
    );
    expect(both.sort()).toEqual([200, 409]);
    expect(listAt(await browser.json("GET", "/session/sign-in-methods"), "data")).toHaveLength(1);
  });

  test("is deleted with its password; its organization management keys are revoked, its LLM keys stay", async () => {
    const [browser, gateway] = [await person("leaver@example.com"), peopled.gateway()];
    const own = textAt(await browser.json("POST", "/keys", { name: "own" }), "key");
    await browser.json("PATCH", "/session", { workspace_id: workspaceId });
    const managing = textAt(
      await browser.json("POST", "/management-keys", { name: "m", scopes: ["read:llm-keys"] }),
      "key",
    );
    const shared = textAt(await browser.json("POST", "/keys", { name: "shared" }), "key");
    const works = async (path: string, secret: string): Promise<number> =>
      status(gateway.get(path, { authorization: `Bearer ${secret}` }));
    expect([
      await works("/key", own),
      await works("/keys", managing),
      await works("/key", shared),
    ]).toEqual([200, 200, 200]);
    expect(await status(browser.api("DELETE", "/session/user"))).toBe(400);
    expect(
      await status(browser.api("DELETE", "/session/user", { password: "not the password" })),
    ).toBe(400);
    const deleted = await browser.json("DELETE", "/session/user", {
      password: "password of leaver@example.com",
    });
    expect(listAt(deleted, "closed_workspaces")).toHaveLength(1);
    expect([
      await works("/key", own),
      await works("/keys", managing),
      await works("/key", shared),
    ]).toEqual([401, 401, 200]);
    expect(await status(browser.api("GET", "/session"))).toBe(401);
    expect(
      await status(browser.signIn("leaver@example.com", "password of leaver@example.com")),
    ).toBe(401);
    expect(
      await status(peopled.owner.api("DELETE", "/session/user", { password: ownersPassword })),
    ).toBe(409);
  });

  test("credits of an organization that closes with it are given up with consent alone", async () => {
    const browser = await person("founder@example.com");
    const made = await browser.json("POST", "/organizations", { name: "Lone" });
    await peopled.owner.json("POST", "/admin/grants", {
      workspace_id: textAt(made, "workspace_id"),
      amount: 5,
      bucket: "topup",
    });
    const password = "password of founder@example.com";
    const refused = await browser.api("DELETE", "/session/user", { password });
    expect([refused.status, at(await refused.json(), "error.metadata.balance_usd")]).toEqual([
      409, 5,
    ]);
    const deleted = await browser.json("DELETE", "/session/user", { password, confirm: true });
    expect(listAt(deleted, "closed_workspaces")).toContain(textAt(made, "workspace_id"));
  });

  test("an organization can be deleted by an owner, along with every credential", async () => {
    const made = await peopled.owner.json("POST", "/organizations", { name: "Short-lived" });
    const [id, workspace] = [textAt(made, "id"), textAt(made, "workspace_id")];
    const admin = await peopled.invited(id, { email: "short@example.com", role: "admin" });
    await admin.json("PATCH", "/session", { workspace_id: workspace });
    const key = textAt(await admin.json("POST", "/keys", { name: "k" }), "key");
    await peopled.owner.json("POST", "/admin/grants", {
      workspace_id: workspace,
      amount: 5,
      bucket: "topup",
    });
    expect(await status(admin.api("DELETE", `/organizations/${id}`))).toBe(403);
    expect(await status(peopled.owner.api("DELETE", `/organizations/${id}`))).toBe(409);
    expect(await peopled.owner.json("DELETE", `/organizations/${id}`, { confirm: true })).toEqual({
      deleted: true,
      id,
    });
    expect(await status(peopled.gateway().get("/key", { authorization: `Bearer ${key}` }))).toBe(
      401,
    );
    expect(await status(admin.api("GET", `/organizations/${id}`))).toBe(404);
    expect(at(await admin.json("GET", "/session"), "workspace.organization_id")).toBeNull();
    expect(await status(peopled.owner.api("DELETE", `/organizations/${id}`))).toBe(404);
  });

  test("an operator can open a workspace that its IP allowlist locked out", async () => {
    const { owner } = peopled;
    const home = textAt(await owner.json("GET", "/session"), "workspace.id");
    await owner.json("POST", "/security/ip-allowlist", { cidr: "203.0.113.0/24", confirm: true });
    expect(await status(owner.api("GET", "/keys"))).toBe(403);
    const opened = await owner.json("DELETE", `/admin/workspaces/${home}/ip-allowlist`);
    expect(opened).toEqual({ deleted: true, id: home, removed: ["203.0.113.0/24"] });
    expect(await status(owner.api("GET", "/keys"))).toBe(200);
  });
});
