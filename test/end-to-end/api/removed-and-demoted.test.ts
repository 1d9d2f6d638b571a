import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startOperatorScene, type OperatorScene } from "../admin/operator-scene.ts";
import { at, listAt, textAt } from "./at.ts";
import type { Browser } from "./people-browser.ts";
import { engines } from "./two-workspaces.ts";

/** An admin of the organisation, in a browser that works there. */
interface Admin {
  browser: Browser;
  id: string;
  path: string;
}

describe.each(engines)("admins who are removed or demoted on %s", (_, freshUrl) => {
  let scene: OperatorScene;
  let organizationPath = "";
  let workspaceId = "";
  beforeAll(async () => {
    scene = await startOperatorScene(await freshUrl());
    organizationPath = `/organizations/${scene.organizationId}`;
    workspaceId = textAt(await scene.owner.json("GET", organizationPath), "workspace_id");
  }, 240_000);
  afterAll(() => scene.stop());

  const admin = async (name: string): Promise<Admin> => {
    const { browser, id } = await scene.person(name);
    const path = `${organizationPath}/members/${id}`;
    await scene.owner.json("PATCH", path, { role: "admin" });
    browser.headers = { "x-service-workspace": workspaceId };
    return { browser, id, path };
  };
  const invite = async (browser: Browser, email: string, role = "member"): Promise<string> => {
    const answer = await browser.json("POST", `${organizationPath}/invitations`, { email, role });
    return new URL(textAt(answer, "url")).searchParams.get("token") ?? "";
  };
  const accept = async (email: string, token: string): Promise<number> =>
    (
      await scene.stranger().ask("POST", "/api/auth/sign-up", {
        name: email,
        email,
        password: `password of ${email}`,
        invitation_token: token,
      })
    ).status;
  const makeKey = async (browser: Browser, scopes: string[]): Promise<string> =>
    textAt(await browser.json("POST", "/management-keys", { name: "k", scopes }), "key");
  const lost = (answer: unknown, path: string, field: string): unknown[] =>
    listAt(answer, path).map((each) => at(each, field));

  test("a removed admin's invitations are withdrawn, and the answer lists them", async () => {
    const { browser, path } = await admin("removed");
    const token = await invite(browser, "late@example.com", "admin");
    const kept = await invite(scene.owner, "welcome@example.com");
    const answer = await scene.owner.json("DELETE", path);
    expect(lost(answer, "revoked_invitations", "email")).toEqual(["late@example.com"]);
    expect(await accept("late@example.com", token)).toBe(403);
    expect(await accept("welcome@example.com", kept)).toBe(200);
  });

  test("a demoted admin's invitations are withdrawn, and do not return with the role", async () => {
    const { browser, path } = await admin("demoted");
    const token = await invite(browser, "later@example.com");
    const answer = await scene.owner.json("PATCH", path, { role: "member" });
    expect(lost(answer, "revoked_invitations", "email")).toEqual(["later@example.com"]);
    await scene.owner.json("PATCH", path, { role: "admin" });
    expect(await accept("later@example.com", token)).toBe(403);
  });

  test("a demoted owner's invitations of owners are withdrawn, others stay", async () => {
    const { browser, path } = await admin("second-owner");
    await scene.owner.json("PATCH", path, { role: "owner" });
    const [owner, member] = [
      await invite(browser, "new-owner@example.com", "owner"),
      await invite(browser, "new-member@example.com"),
    ];
    const answer = await scene.owner.json("PATCH", path, { role: "admin" });
    expect(lost(answer, "revoked_invitations", "email")).toEqual(["new-owner@example.com"]);
    expect(await accept("new-owner@example.com", owner)).toBe(403);
    expect(await accept("new-member@example.com", member)).toBe(200);
  });

  test("the invitations of a blocked person wait until they are unblocked", async () => {
    const { browser, id } = await admin("blocked");
    const token = await invite(browser, "waits@example.com");
    await scene.owner.json("PATCH", `/admin/users/${id}`, { blocked: true });
    expect(await accept("waits@example.com", token)).toBe(403);
    await scene.owner.json("PATCH", `/admin/users/${id}`, { blocked: false });
    expect(await accept("waits@example.com", token)).toBe(200);
  });

  test("a demoted admin's management keys keep what members hold, and make no more", async () => {
    const { browser, path } = await admin("keeper");
    const wide = await makeKey(browser, ["write:management-keys", "write:llm-keys", "write:byok"]);
    const made: unknown = await (
      await scene.withKey(wide, "POST", "/management-keys", {
        name: "of a key",
        scopes: ["write:management-keys"],
      })
    ).json();
    const narrow = await makeKey(browser, ["read:credits"]);
    const owners = await makeKey(await ownerInside(), ["write:management-keys"]);
    const answer = await scene.owner.json("PATCH", path, { role: "member" });
    expect(lost(answer, "narrowed_keys", "scopes")).toEqual([[], ["write:llm-keys", "read:byok"]]);
    expect(lost(answer, "narrowed_keys", "lost_scopes")).toEqual([
      ["write:management-keys"],
      ["write:management-keys", "write:byok"],
    ]);
    const creating = { name: "more", scopes: ["read:credits"] };
    const statuses = async (secret: string): Promise<number[]> => [
      (await scene.withKey(secret, "POST", "/management-keys", creating)).status,
      (await scene.withKey(secret, "GET", "/keys")).status,
      (await scene.withKey(secret, "GET", "/credits")).status,
    ];
    expect(await statuses(wide)).toEqual([403, 200, 403]);
    expect(await statuses(textAt(made, "key"))).toEqual([401, 401, 401]);
    expect(await statuses(narrow)).toEqual([403, 403, 200]);
    expect((await statuses(owners))[0]).toBe(403);
    const again = await scene.owner.json("PATCH", path, { role: "member" });
    expect(listAt(again, "narrowed_keys")).toEqual([]);
  });

  async function ownerInside(): Promise<Browser> {
    const inside = scene.stranger();
    await inside.signIn("owner@example.com", "the owner's long password");
    inside.headers = { "x-service-workspace": workspaceId };
    return inside;
  }

  test("inviting a member answers 409", async () => {
    const { browser } = await scene.person("twice");
    const email = textAt(await browser.json("GET", "/session"), "user.email");
    const answer = await scene.owner.api("POST", `${organizationPath}/invitations`, {
      email: email.toUpperCase(),
      role: "admin",
    });
    expect([answer.status, at(await answer.json(), "error.param")]).toEqual([409, "email"]);
  });
});

test("a withdrawn operator creates no operators' key in the first workspace, and their keys lose the scope", async () => {
  const scene = await startOperatorScene(undefined);
  const { browser, id } = await scene.person("second");
  const ownerId = textAt(await scene.owner.json("GET", "/session"), "user.id");
  const scopes = ["write:management-keys"];
  const made = await scene.owner.json("POST", "/management-keys", { name: "k", scopes });
  expect(at(made, "data.operator")).toBe(true);
  await scene.owner.json("PATCH", `/admin/users/${id}`, { operator: true });
  await browser.json("PATCH", `/admin/users/${ownerId}`, { operator: false });
  expect((await scene.withKey(textAt(made, "key"), "GET", "/admin/users")).status).toBe(403);
  expect((await scene.owner.api("POST", "/management-keys", { name: "k", scopes })).status).toBe(
    403,
  );
  expect((await scene.automation("GET", "/admin/users")).status).toBe(200);
  await scene.stop();
});
