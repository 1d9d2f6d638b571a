import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { testLlmKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { allEngines } from "../api/two-workspaces.ts";
import { startOperatorScene, type OperatorScene } from "./operator-scene.ts";

describe.each(allEngines)("users for operators, on %s", (_, freshUrl) => {
  let scene: OperatorScene;
  beforeAll(async () => {
    scene = await startOperatorScene(await freshUrl());
  }, 240_000);
  afterAll(() => scene.stop());

  const users = async (query: string): Promise<unknown[]> =>
    listAt(await scene.owner.json("GET", `/admin/users${query}`), "data");
  const names = async (query: string): Promise<unknown[]> =>
    (await users(query)).map((user) => at(user, "email"));

  test("are listed page by page and searched by name, address and state", async () => {
    const before = (await users("")).length;
    for (const name of ["ann", "bert", "per_cent"]) await scene.person(name);
    expect(await names("")).toHaveLength(before + 3);
    expect(await scene.owner.json("GET", "/admin/users?limit=1&offset=0")).toMatchObject({
      object: "list",
      total: before + 3,
      has_more: true,
      data: [{ email: "per_cent@example.com", object: "user", blocked: false }],
    });
    const pages = [0, 1, 2, 3].map((offset) => users(`?limit=1&offset=${offset}`));
    expect((await Promise.all(pages)).flat()).toEqual((await users("")).slice(0, 4));
    expect(await names("?search=ANN")).toEqual(["ann@example.com"]);
    expect(await names("?search=r_c")).toEqual(["per_cent@example.com"]);
    expect(await names("?search=%25")).toEqual([]);
    expect(await names("?operator=true")).toEqual(["owner@example.com"]);
    expect(await names("?blocked=true")).toEqual([]);
    expect(await names("?include_stale=false")).toHaveLength(before + 3);
    for (const wrong of ["limit=0", "limit=201", "offset=-1", "operator=yes"]) {
      const refused = await errorOf(await scene.owner.api("GET", `/admin/users?${wrong}`));
      expect(refused).toMatchObject({ status: 400, param: wrong.split("=")[0] });
    }
  });

  test("are shown with sign-in methods, sessions and organizations, without secrets", async () => {
    const { browser, id } = await scene.person("carla");
    const shown = await scene.owner.json("GET", `/admin/users/${id}`);
    expect(shown).toMatchObject({
      id,
      email: "carla@example.com",
      operator: false,
      blocked: false,
      last_signed_in_at: expect.any(String),
      workspace_id: expect.stringMatching(/^ws_/),
      sign_in: { password: true, passkeys: 0, providers: [] },
      sessions: [{ address: "127.0.0.1" }],
      organizations: [{ id: scene.organizationId, role: "member" }],
    });
    expect(JSON.stringify(shown)).not.toContain(
      decodeURIComponent(browser.cookies.get(brand.sessionCookie) ?? "").split(".")[0] ?? "-",
    );
    expect((await scene.owner.api("GET", "/admin/users/usr_none")).status).toBe(404);
  });

  test("blocking lists the organisation keys that the person made, and ends them on request", async () => {
    const { browser, id } = await scene.person("egon");
    const made = await browser.json("POST", "/organizations", { name: "Egon's" });
    const workspaceId = textAt(made, "workspace_id");
    await browser.json("PATCH", "/session", { workspace_id: workspaceId });
    const key = textAt(await browser.json("POST", "/keys", { name: "Shared" }), "key");
    const status = async (): Promise<number> => (await scene.withKey(key, "GET", "/models")).status;
    const path = `/admin/users/${id}`;
    const lone = await scene.owner.api("PATCH", path, { revoke_keys: "all" });
    expect(await errorOf(lone)).toMatchObject({ status: 400, param: "revoke_keys" });
    const listed = { name: "Shared", object: "llm_key", workspace_id: workspaceId };
    expect(await scene.owner.json("PATCH", path, { blocked: true })).toMatchObject({
      revoked_keys: [],
      keys_in_force: [listed],
    });
    expect(await status()).toBe(200);
    const ended = await scene.owner.json("PATCH", path, { blocked: true, revoke_keys: "all" });
    expect(ended).toMatchObject({ revoked_keys: [listed], keys_in_force: [] });
    expect(await status()).toBe(401);
    await scene.owner.json("PATCH", path, { blocked: false });
  });

  test("who are blocked lose sessions and keys at the next request, and regain keys when unblocked", async () => {
    const { browser, id, email, password } = await scene.person("dora");
    const llm = textAt(await browser.json("POST", "/keys", { name: "own" }), "key");
    const management = textAt(
      await browser.json("POST", "/management-keys", { name: "own", scopes: ["read:credits"] }),
      "key",
    );
    const statuses = async (): Promise<number[]> => [
      (await browser.api("GET", "/session")).status,
      (await scene.withKey(llm, "GET", "/models")).status,
      (await scene.withKey(management, "GET", "/credits")).status,
    ];
    expect(await statuses()).toEqual([200, 200, 200]);
    expect(await scene.owner.json("PATCH", `/admin/users/${id}`, { blocked: true })).toMatchObject({
      id,
      blocked: true,
    });
    expect(await statuses()).toEqual([401, 401, 401]);
    expect((await browser.signIn(email, password)).status).toBe(403);
    expect((await browser.signIn(email, "not the password")).status).toBe(401);
    expect(await names("?blocked=true")).toEqual([email]);
    if (scene.gateway().app.storage.kind === "postgres") {
      await scene.restart();
      expect(await statuses()).toEqual([401, 401, 401]);
    }
    const letIn = await scene.owner.json("PATCH", `/admin/users/${id}`, { blocked: false });
    expect(letIn).toMatchObject({ id, blocked: false, blocked_at: null });
    expect((await browser.signIn(email, password)).status).toBe(200);
    expect(await statuses()).toEqual([200, 200, 200]);
  });

  test("become and stop being operators, except the last one, and cannot block themselves", async () => {
    const { browser, id } = await scene.person("eve");
    const ownerId = textAt(await scene.owner.json("GET", "/session"), "user.id");
    expect((await browser.api("GET", "/admin/users")).status).toBe(403);
    for (const change of [{ operator: false }, { blocked: true }]) {
      expect(
        await errorOf(await scene.automation("PATCH", `/admin/users/${ownerId}`, change)),
      ).toMatchObject({ status: 409 });
    }
    expect((await scene.automation("DELETE", `/admin/users/${ownerId}`)).status).toBe(409);
    await scene.owner.json("PATCH", `/admin/users/${id}`, { operator: true });
    expect((await browser.api("GET", "/admin/users")).status).toBe(200);
    expect((await browser.api("PATCH", `/admin/users/${id}`, { blocked: true })).status).toBe(409);
    const answers = await Promise.all(
      [ownerId, id].map((each) =>
        scene.automation("PATCH", `/admin/users/${each}`, { operator: false }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    await scene.automation("PATCH", `/admin/users/${ownerId}`, { operator: true });
    await scene.automation("PATCH", `/admin/users/${id}`, { operator: false });
    expect((await browser.api("GET", "/admin/users")).status).toBe(403);
    expect((await scene.owner.api("GET", "/admin/users")).status).toBe(200);
  });

  test("who are deleted leave no valid credential and no organization without an owner", async () => {
    const { browser, id, email, password } = await scene.person("fred");
    const key = textAt(await browser.json("POST", "/keys", { name: "own" }), "key");
    const workspace = textAt(await browser.json("GET", "/session"), "workspace.id");
    const organization = await browser.json("POST", "/organizations", { name: "Fred's" });
    const deletion = await scene.owner.json("DELETE", `/admin/users/${id}`);
    expect(deletion).toEqual({
      deleted: true,
      id,
      closed_workspaces: [
        { id: workspace, llm_keys: 1, management_keys: 0, provider_keys: 0 },
        { id: at(organization, "workspace_id"), llm_keys: 0, management_keys: 0, provider_keys: 0 },
      ],
    });
    expect((await browser.api("GET", "/session")).status).toBe(401);
    expect((await scene.withKey(key, "GET", "/models")).status).toBe(401);
    expect((await browser.signIn(email, password)).status).toBe(401);
    expect((await scene.owner.api("GET", `/admin/users/${id}`)).status).toBe(404);
    const owner = await scene.person("gina");
    const shared = textAt(
      await owner.browser.json("POST", "/organizations", { name: "Shared" }),
      "id",
    );
    const invitation = await owner.browser.json("POST", `/organizations/${shared}/invitations`, {
      email: "owner@example.com",
    });
    await scene.owner.json("POST", "/invitations/accept", {
      token: new URL(textAt(invitation, "url")).searchParams.get("token"),
    });
    expect(
      await errorOf(await scene.owner.api("DELETE", `/admin/users/${owner.id}`)),
    ).toMatchObject({ status: 409 });
  });

  test("lose their sessions when an operator ends them", async () => {
    const { browser, id } = await scene.person("hans");
    expect(await scene.owner.json("DELETE", `/admin/users/${id}/sessions`)).toEqual({
      deleted: true,
      count: 1,
    });
    expect((await browser.api("GET", "/session")).status).toBe(401);
  });

  test("are changed with an audit entry, and only by operators", async () => {
    const { browser, id } = await scene.person("ida");
    await scene.owner.json("PATCH", `/admin/users/${id}`, { blocked: true });
    expect(
      listAt(await scene.owner.json("GET", "/security/audit?limit=1"), "data")[0],
    ).toMatchObject({
      action: "PATCH /admin/users/:id",
      target: id,
      fields: ["blocked"],
      outcome: "done",
      actor: { kind: "user", label: "owner@example.com" },
    });
    await scene.owner.json("PATCH", `/admin/users/${id}`, { blocked: false });
    await browser.signIn("ida@example.com", "password of ida@example.com");
    const own = textAt(
      await browser.json("POST", "/management-keys", {
        name: "all",
        scopes: ["write:management-keys"],
      }),
      "key",
    );
    const refusals: [Promise<Response>, number][] = [
      [browser.api("PATCH", `/admin/users/${id}`, { operator: true }), 403],
      [scene.withKey(own, "PATCH", `/admin/users/${id}`, { operator: true }), 403],
      [scene.withKey(testLlmKey, "PATCH", `/admin/users/${id}`, { operator: true }), 401],
      [scene.stranger().api("PATCH", `/admin/users/${id}`, { operator: true }), 401],
    ];
    for (const [refused, status] of refusals) expect((await refused).status).toBe(status);
    expect(await scene.owner.json("GET", `/admin/users/${id}`)).toMatchObject({ operator: false });
  });
});
