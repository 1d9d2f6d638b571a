import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { scopes } from "../../../src/identity/keys/scopes.ts";
import { at, listAt, textAt } from "./at.ts";
import { codeOf, wrongCodeOf } from "../../support/authenticator-app.ts";
import { type Browser, publicOrigin, startPeopled, type PeopledGateway } from "./people-browser.ts";
import { allEngines } from "./two-workspaces.ts";

const listed = async (browser: Browser, path: string): Promise<unknown[]> =>
  listAt(await browser.json("GET", path), "data");
const statusOf = async (asked: Promise<Response>): Promise<number> => (await asked).status;

interface Organization {
  id: string;
  workspaceId: string;
}

async function found(browser: Browser, name: string): Promise<Organization> {
  const made = await browser.json("POST", "/organizations", { name });
  return { id: textAt(made, "id"), workspaceId: textAt(made, "workspace_id") };
}

const enter = (browser: Browser, { workspaceId }: Organization): Promise<unknown> =>
  browser.json("PATCH", "/session", { workspace_id: workspaceId });
const userIdOf = async (browser: Browser): Promise<string> =>
  textAt(await browser.json("GET", "/session"), "user.id");

describe.each(allEngines)("organizations on %s", (_, freshUrl) => {
  let peopled: PeopledGateway;
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl());
  });
  afterAll(() => peopled.stop());

  test("have a workspace that only their members can enter", async () => {
    const { owner } = peopled;
    const organization = await found(owner, "Acme");
    expect(await owner.json("GET", `/organizations/${organization.id}`)).toMatchObject({
      name: "Acme",
      role: "owner",
    });
    const workspaces = await listed(owner, "/workspaces");
    expect(workspaces.map((workspace) => at(workspace, "organization_id"))).toEqual([
      null,
      organization.id,
    ]);
    const other = await found(owner, "Elsewhere");
    const outsider = await peopled.invited(other.id, {
      email: "outsider@example.com",
      role: "owner",
    });
    expect(
      await statusOf(outsider.api("PATCH", "/session", { workspace_id: organization.workspaceId })),
    ).toBe(404);
    for (const [method, path, body] of [
      ["GET", ""],
      ["PATCH", "", { name: "Mine" }],
      ["GET", "/members"],
      ["GET", "/invitations"],
      ["POST", "/invitations", { email: "friend@example.com" }],
      ["DELETE", `/members/${await userIdOf(owner)}`],
      ["PATCH", `/members/${await userIdOf(owner)}`, { role: "member" }],
    ] as const) {
      expect([
        path,
        await statusOf(outsider.api(method, `/organizations/${organization.id}${path}`, body)),
      ]).toEqual([path, 404]);
    }
    expect(
      await statusOf(
        outsider.api("PATCH", `/workspaces/${organization.workspaceId}`, { name: "Mine" }),
      ),
    ).toBe(404);
  });

  test("a session's request can name another workspace of its user, but no other", async () => {
    const { owner } = peopled;
    const [here, there] = [await found(owner, "Here"), await found(owner, "There")];
    await enter(owner, here);
    const named = async (browser: Browser, id: string): Promise<[number, unknown]> => {
      browser.headers = { "x-service-workspace": id };
      const answer = await browser.api("GET", "/session");
      browser.headers = {};
      return [answer.status, at(await answer.json(), "workspace.id")];
    };
    expect(await named(owner, there.workspaceId)).toEqual([200, there.workspaceId]);
    expect(at(await owner.json("GET", "/session"), "workspace.id")).toBe(here.workspaceId);
    const member = await peopled.invited(here.id, {
      email: "one-of-two@example.com",
      role: "member",
    });
    expect(await named(member, here.workspaceId)).toEqual([200, here.workspaceId]);
    for (const id of [there.workspaceId, "ws_none", ""])
      expect([id, await named(member, id)]).toEqual([id, [403, undefined]]);
  });

  test("own the keys made in them, while personal keys belong to their creator", async () => {
    const { owner } = peopled;
    const organization = await found(owner, "Keys");
    const member = await peopled.invited(organization.id, {
      email: "maker@example.com",
      role: "member",
    });
    const personal = await member.json("POST", "/keys", { name: "mine" });
    await enter(member, organization);
    const shared = await member.json("POST", "/keys", { name: "ours" });
    expect(at(shared, "data.creator_user_id")).toBe(await userIdOf(member));
    await enter(owner, organization);
    expect((await listed(owner, "/keys")).map((key) => at(key, "name"))).toEqual(["ours"]);
    expect(await statusOf(owner.api("GET", `/keys/${textAt(personal, "data.hash")}`))).toBe(404);
    expect(await statusOf(owner.api("DELETE", `/keys/${textAt(shared, "data.hash")}`))).toBe(200);
    const gateway = peopled.gateway();
    const refused = await gateway.get("/auth/key", {
      authorization: `Bearer ${textAt(shared, "key")}`,
    });
    expect(refused.status).toBe(401);
    await owner.json("PATCH", "/session", { workspace_id: null });
    expect((await listed(owner, "/keys")).map((key) => at(key, "name"))).not.toContain("mine");
    await member.json("PATCH", "/session", { workspace_id: null });
    expect((await listed(member, "/keys")).map((key) => at(key, "name"))).toEqual(["mine"]);
  });

  test("keys made by people allow inference endpoints, those made with management keys all endpoints", async () => {
    const { owner } = peopled;
    const made = await owner.json("POST", "/keys", { name: "by hand" });
    expect(listAt(made, "data.allowed_endpoints")).toContain("/api/v1/chat/completions");
    const gateway = peopled.gateway();
    const secret = { authorization: `Bearer ${textAt(made, "key")}` };
    expect((await gateway.get("/credits", secret)).status).toBe(403);
    expect((await gateway.get("/models", secret)).status).toBe(200);
    const all = await owner.json("POST", "/keys", { name: "all", allowed_endpoints: null });
    expect(
      (await gateway.get("/credits", { authorization: `Bearer ${textAt(all, "key")}` })).status,
    ).toBe(200);
  });

  test("members have the standard scopes, admins every scope in the workspace, but no right to owners", async () => {
    const { owner } = peopled;
    const organization = await found(owner, "Scopes");
    const member = await peopled.invited(organization.id, {
      email: "plain@example.com",
      role: "member",
    });
    const admin = await peopled.invited(organization.id, {
      email: "admin@example.com",
      role: "admin",
    });
    await Promise.all([enter(member, organization), enter(admin, organization)]);
    expect(at(await member.json("GET", "/session"), "scopes")).toEqual([
      "read:llm-keys",
      "write:llm-keys",
      "read:presets",
      "write:presets",
      "read:credits",
      "read:analytics",
      "read:byok",
      "read:hub",
      "write:hub",
      "read:connections",
      "write:connections",
      "inference",
    ]);
    expect(at(await admin.json("GET", "/session"), "scopes")).toEqual([...scopes]);
    const wanted = { name: "robot", scopes: ["read:credits"] };
    expect(await statusOf(member.api("POST", "/management-keys", wanted))).toBe(403);
    expect(await statusOf(admin.api("POST", "/management-keys", wanted))).toBe(200);
    for (const [browser, status] of [
      [member, 403],
      [admin, 200],
    ] as const) {
      expect(
        await statusOf(
          browser.api("PATCH", `/workspaces/${organization.workspaceId}`, { name: "Renamed" }),
        ),
      ).toBe(status);
      expect(
        await statusOf(
          browser.api("PATCH", `/organizations/${organization.id}`, { name: "Renamed" }),
        ),
      ).toBe(status);
      expect(
        await statusOf(browser.api("GET", `/organizations/${organization.id}/invitations`)),
      ).toBe(status);
      expect(
        await statusOf(
          browser.api("POST", `/organizations/${organization.id}/invitations`, {
            email: "x@example.com",
          }),
        ),
      ).toBe(status);
      expect(await statusOf(browser.api("GET", `/organizations/${organization.id}/members`))).toBe(
        200,
      );
    }
    const anotherOwner = { email: "y@example.com", role: "owner" };
    expect(
      await statusOf(
        admin.api("POST", `/organizations/${organization.id}/invitations`, anotherOwner),
      ),
    ).toBe(403);
  });

  test("change roles immediately and always keep an owner", async () => {
    const { owner } = peopled;
    const organization = await found(owner, "Roles");
    const admin = await peopled.invited(organization.id, {
      email: "roles@example.com",
      role: "admin",
    });
    await enter(admin, organization);
    const [ownersId, adminsId] = [await userIdOf(owner), await userIdOf(admin)];
    const member = (id: string): string => `/organizations/${organization.id}/members/${id}`;
    expect(await statusOf(admin.api("PATCH", member(ownersId), { role: "member" }))).toBe(403);
    expect(await statusOf(admin.api("DELETE", member(ownersId)))).toBe(403);
    expect(await statusOf(admin.api("PATCH", member(adminsId), { role: "owner" }))).toBe(403);
    expect(await statusOf(owner.api("PATCH", member(ownersId), { role: "member" }))).toBe(409);
    expect(await statusOf(owner.api("DELETE", member(ownersId)))).toBe(409);
    expect(await statusOf(owner.api("PATCH", member("usr_none"), { role: "member" }))).toBe(404);
    expect(await statusOf(admin.api("GET", "/management-keys"))).toBe(200);
    expect(await owner.json("PATCH", member(adminsId), { role: "member" })).toMatchObject({
      user_id: adminsId,
      role: "member",
    });
    expect(await statusOf(admin.api("GET", "/management-keys"))).toBe(403);
    await owner.json("PATCH", member(adminsId), { role: "owner" });
    const leaving = await Promise.all([
      owner.api("DELETE", member(ownersId)),
      admin.api("DELETE", member(adminsId)),
    ]);
    expect(leaving.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test("end a removed member's access with the next request", async () => {
    const { owner } = peopled;
    const organization = await found(owner, "Removal");
    const member = await peopled.invited(organization.id, {
      email: "leaver@example.com",
      role: "member",
    });
    await enter(member, organization);
    const made = await member.json("POST", "/keys", { name: "stays" });
    await owner.json(
      "DELETE",
      `/organizations/${organization.id}/members/${await userIdOf(member)}`,
    );
    expect(at(await member.json("GET", "/session"), "workspace.organization_id")).toBeNull();
    expect((await listed(member, "/keys")).map((key) => at(key, "name"))).not.toContain("stays");
    expect(await statusOf(member.api("GET", `/keys/${textAt(made, "data.hash")}`))).toBe(404);
    expect(await statusOf(member.api("GET", `/organizations/${organization.id}`))).toBe(404);
    await enter(owner, organization);
    expect((await listed(owner, "/keys")).map((key) => at(key, "name"))).toEqual(["stays"]);
    await owner.json("PATCH", "/session", { workspace_id: null });
  });
});

describe.each(allEngines)("invitations on %s", (_, freshUrl) => {
  let peopled: PeopledGateway;
  let organization: Organization;
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl());
    organization = await found(peopled.owner, "Inviting");
  });
  afterAll(() => peopled.stop());

  const invite = async (email: string): Promise<{ token: string; id: string }> => {
    const answer = await peopled.owner.json(
      "POST",
      `/organizations/${organization.id}/invitations`,
      { email },
    );
    return {
      token: new URL(textAt(answer, "url")).searchParams.get("token") ?? "",
      id: textAt(answer, "data.id"),
    };
  };
  const joins = (email: string, token: string): Promise<number> =>
    statusOf(
      peopled.stranger().ask("POST", "/api/auth/sign-up", {
        name: "Somebody",
        email,
        password: "a password of some length",
        invitation_token: token,
      }),
    );

  test("work once, for their address only, and are not stored in plain text", async () => {
    const { token } = await invite("once@example.com");
    expect(await joins("other@example.com", token)).toBe(403);
    expect(await joins("once@example.com", `${token}x`)).toBe(403);
    const rows = await peopled
      .gateway()
      .app.storage.database.withTables<{ organization_invitations: { token_hash: string } }>()
      .selectFrom("organization_invitations")
      .selectAll()
      .execute();
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(await joins("once@example.com", token)).toBe(200);
    expect(await joins("once@example.com", token)).toBe(403);
    expect(await joins("other@example.com", token)).toBe(403);
  });

  test("accepted many times in parallel create one account", async () => {
    const { token } = await invite("race@example.com");
    const statuses = await Promise.all(
      Array.from({ length: 5 }, () => joins("race@example.com", token)),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  });

  test("become invalid when they are withdrawn or replaced", async () => {
    const first = await invite("replaced@example.com");
    const second = await invite("replaced@example.com");
    expect(await joins("replaced@example.com", first.token)).toBe(403);
    const path = `/organizations/${organization.id}/invitations`;
    expect((await listed(peopled.owner, path)).map((entry) => at(entry, "email"))).toContain(
      "replaced@example.com",
    );
    expect(JSON.stringify(await listed(peopled.owner, path))).not.toContain(second.token);
    expect(await statusOf(peopled.owner.api("DELETE", `${path}/${second.id}`))).toBe(200);
    expect(await statusOf(peopled.owner.api("DELETE", `${path}/${second.id}`))).toBe(404);
    expect(await joins("replaced@example.com", second.token)).toBe(403);
  });

  test("can be accepted with an existing account", async () => {
    const elsewhere = await found(peopled.owner, "Elsewhere");
    const guest = await peopled.invited(elsewhere.id, {
      email: "guest@example.com",
      role: "member",
    });
    const { token } = await invite("guest@example.com");
    const foreign = await invite("foreign@example.com");
    expect(await statusOf(guest.api("POST", "/invitations/accept", { token: foreign.token }))).toBe(
      403,
    );
    expect(await guest.json("POST", "/invitations/accept", { token })).toMatchObject({
      id: organization.id,
      role: "member",
    });
    expect(await statusOf(guest.api("POST", "/invitations/accept", { token }))).toBe(403);
    expect(await listed(guest, "/organizations")).toHaveLength(2);
  });

  test("can be accepted on their page without JavaScript", async () => {
    const { token } = await invite("page@example.com");
    const browser = peopled.stranger();
    const page = await browser.ask("GET", `/join?token=${token}`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    const html = await page.text();
    expect(html).toContain("Join Inviting");
    expect(html).toContain('value="page@example.com" readonly required');
    const form = new URLSearchParams({
      token,
      name: "<b>Page</b>",
      email: "page@example.com",
      password: "short",
    });
    const wrong = await browser.ask("POST", "/join", form);
    expect(wrong.status).toBe(400);
    expect(await wrong.text()).toContain("&lt;b&gt;Page&lt;/b&gt;");
    form.set("password", "a password of some length");
    const joined = await browser.ask("POST", "/join", form);
    const end = `/join?joined=${organization.id}`;
    expect([joined.status, joined.headers.get("location")]).toEqual([303, end]);
    expect(await (await browser.ask("GET", end)).text()).toContain("You are a member of Inviting");
    expect(await (await peopled.stranger().ask("GET", end)).text()).not.toContain("Inviting");
    expect(await listed(browser, "/organizations")).toHaveLength(1);
    expect(await (await browser.ask("GET", `/join?token=${token}`)).text()).toContain("not open");
  });

  test("can be accepted in a browser with an existing account, signed in or not", async () => {
    const elsewhere = await found(peopled.owner, "Elsewhere");
    const signedIn = await peopled.invited(elsewhere.id, {
      email: "here@example.com",
      role: "member",
    });
    const [mine, again] = [await invite("here@example.com"), `/join?joined=${organization.id}`];
    const page = await (await signedIn.ask("GET", `/join?token=${mine.token}`)).text();
    expect([
      page.includes("You are signed in as here@example.com"),
      page.includes("password"),
    ]).toEqual([true, false]);
    expect(await (await peopled.owner.ask("GET", `/join?token=${mine.token}`)).text()).toContain(
      "Use another account",
    );
    expect(
      (await peopled.owner.ask("POST", "/join/accept", new URLSearchParams({ token: mine.token })))
        .status,
    ).toBe(403);
    const accepted = await signedIn.ask(
      "POST",
      "/join/accept",
      new URLSearchParams({ token: mine.token }),
    );
    expect([accepted.status, accepted.headers.get("location")]).toEqual([303, again]);
    expect(await (await signedIn.ask("GET", again)).text()).toContain(
      "You are a member of Inviting",
    );

    await peopled.invited(elsewhere.id, { email: "away@example.com", role: "member" });
    const { token } = await invite("away@example.com");
    const browser = peopled.stranger();
    expect(await (await browser.ask("GET", `/join?token=${token}`)).text()).toContain(
      "Password of your account",
    );
    const wrong = new URLSearchParams({ token, current_password: "not the password" });
    expect((await browser.ask("POST", "/join/accept", wrong)).status).toBe(401);
    expect((await browser.ask("POST", "/join/accept", new URLSearchParams({ token }))).status).toBe(
      401,
    );
    const right = new URLSearchParams({ token, current_password: "password of away@example.com" });
    browser.origin = "https://evil.example";
    expect((await browser.ask("POST", "/join/accept", right)).status).toBe(403);
    browser.origin = publicOrigin;
    const joined = await browser.ask("POST", "/join/accept", right);
    expect([joined.status, joined.headers.get("location")]).toEqual([303, again]);
    expect(await (await browser.ask("GET", again)).text()).toContain(
      "You are a member of Inviting",
    );
    expect(
      (await listed(browser, "/organizations")).map((each) => at(each, "name")).sort(),
    ).toEqual(["Elsewhere", "Inviting"]);
  });

  test("can be accepted in a browser with a second factor", async () => {
    const elsewhere = await found(peopled.owner, "Elsewhere");
    const email = "careful@example.com";
    const guest = await peopled.invited(elsewhere.id, { email, role: "member" });
    const set = (await (
      await guest.ask("POST", "/api/auth/two-factor/enable", { password: `password of ${email}` })
    ).json()) as unknown;
    await guest.ask("POST", "/api/auth/two-factor/confirm", {
      code: codeOf(textAt(set, "totp_uri"), Date.now()),
    });
    const { token } = await invite(email);
    const browser = peopled.stranger();
    const asked = await browser.ask(
      "POST",
      "/join/accept",
      new URLSearchParams({ token, current_password: `password of ${email}` }),
    );
    expect([asked.status, await asked.text()]).toEqual([
      200,
      expect.stringContaining("authenticator app"),
    ]);
    const wrong = wrongCodeOf(textAt(set, "totp_uri"), Date.now());
    expect(
      (await browser.ask("POST", "/join/accept", new URLSearchParams({ token, code: wrong })))
        .status,
    ).toBe(401);
    const joined = await browser.ask(
      "POST",
      "/join/accept",
      new URLSearchParams({ token, code: textAt(set, "backup_codes.0") }),
    );
    expect([joined.status, joined.headers.get("location")]).toEqual([
      303,
      `/join?joined=${organization.id}`,
    ]);
  });
});
