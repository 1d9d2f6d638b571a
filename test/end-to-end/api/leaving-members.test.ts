import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { listAt, textAt } from "./at.ts";
import { type Browser, startPeopled, type PeopledGateway } from "./people-browser.ts";
import { engines } from "./two-workspaces.ts";

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

describe.each(engines)("keys of a member who leaves, on %s", (_, freshUrl) => {
  let peopled: PeopledGateway;
  let organization: Organization;
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl());
    organization = await found(peopled.owner, "Leaving");
  });
  afterAll(() => peopled.stop());

  /** An admin with a management key, an LLM key, and an LLM key that the management key made. */
  const adminWithKeys = async (email: string) => {
    const admin = await peopled.invited(organization.id, { email, role: "admin" });
    await enter(admin, organization);
    const wanted = { name: "managing", scopes: ["write:llm-keys", "write:management-keys"] };
    const managing = textAt(await admin.json("POST", "/management-keys", wanted), "key");
    const key = textAt(await admin.json("POST", "/keys", { name: "by hand" }), "key");
    const gateway = peopled.gateway();
    const withKey = (path: string, body: unknown): Promise<Response> =>
      gateway.post(path, body, { headers: { authorization: `Bearer ${managing}` } });
    const made = textAt(await (await withKey("/keys", { name: "by key" })).json(), "key");
    const managed = textAt(
      await (
        await withKey("/management-keys", { name: "by key", scopes: ["read:llm-keys"] })
      ).json(),
      "key",
    );
    const works = async (path: string, secret: string): Promise<boolean> =>
      (await gateway.get(path, { authorization: `Bearer ${secret}` })).status === 200;
    return {
      admin,
      userId: await userIdOf(admin),
      inForce: async () => [
        await works("/keys", managing),
        await works("/keys", managed),
        await works("/key", key),
        await works("/key", made),
      ],
    };
  };
  const removed = (userId: string, query = "", body?: unknown): Promise<unknown> =>
    peopled.owner.json(
      "DELETE",
      `/organizations/${organization.id}/members/${userId}${query}`,
      body,
    );
  const names = (answer: unknown, list: string): string[] =>
    listAt(answer, list)
      .map((key) => `${textAt(key, "object")} ${textAt(key, "name")}`)
      .sort();

  test("lose management keys and the keys made with them, and the response lists keys still in force", async () => {
    const { userId, inForce } = await adminWithKeys("default@example.com");
    expect(await inForce()).toEqual([true, true, true, true]);
    const answer = await removed(userId);
    expect(names(answer, "revoked_keys")).toEqual([
      "management_key by key",
      "management_key managing",
    ]);
    expect(names(answer, "keys_in_force")).toEqual(["llm_key by hand", "llm_key by key"]);
    expect(await inForce()).toEqual([false, false, true, true]);
    // Asking again ends what a crash left; after that there is no member to remove.
    expect(names(await removed(userId, "?revoke_keys=all"), "revoked_keys")).toEqual([
      "llm_key by hand",
      "llm_key by key",
    ]);
    expect(await inForce()).toEqual([false, false, false, false]);
    expect(
      await statusOf(
        peopled.owner.api("DELETE", `/organizations/${organization.id}/members/${userId}`),
      ),
    ).toBe(404);
  });

  test("are revoked too where they are disabled, since they could be enabled again", async () => {
    const { admin, userId } = await adminWithKeys("disabled@example.com");
    const { data } = (await admin.json("POST", "/keys", { name: "asleep", disabled: true })) as {
      data: { hash: string };
    };
    expect(names(await removed(userId, "?revoke_keys=all"), "revoked_keys")).toContain(
      "llm_key asleep",
    );
    await enter(peopled.owner, organization);
    expect(await statusOf(peopled.owner.api("GET", `/keys/${data.hash}`))).toBe(404);
    await peopled.owner.json("PATCH", "/session", { workspace_id: null });
  });

  test("are all revoked or all kept with revoke_keys", async () => {
    const [all, none] = [
      await adminWithKeys("all@example.com"),
      await adminWithKeys("none@example.com"),
    ];
    expect(names(await removed(all.userId, "", { revoke_keys: "all" }), "keys_in_force")).toEqual(
      [],
    );
    expect(await all.inForce()).toEqual([false, false, false, false]);
    expect(
      listAt(await removed(none.userId, "", { revoke_keys: "none" }), "keys_in_force"),
    ).toHaveLength(4);
    expect(await none.inForce()).toEqual([true, true, true, true]);
    const path = `/organizations/${organization.id}/members/${none.userId}?revoke_keys=some`;
    expect(await statusOf(peopled.owner.api("DELETE", path))).toBe(400);
  });

  test("cannot be kept by a member who leaves on their own", async () => {
    const { admin, userId, inForce } = await adminWithKeys("leaves@example.com");
    const path = `/organizations/${organization.id}/members/${userId}`;
    expect(await statusOf(admin.api("DELETE", path, { revoke_keys: "none" }))).toBe(403);
    expect(names(await admin.json("DELETE", path), "keys_in_force")).toEqual([
      "llm_key by hand",
      "llm_key by key",
    ]);
    expect(await inForce()).toEqual([false, false, true, true]);
  });
});
