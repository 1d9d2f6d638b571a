import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/platform/kernel/clock.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { startOperatorScene, type OperatorScene } from "../admin/operator-scene.ts";
import { AppSide, keyCode, verifier } from "../consent/flows.ts";
import { toolNames } from "../mcp/mcp-client.ts";
import { at, listAt, textAt } from "./at.ts";
import type { Browser } from "./people-browser.ts";

/** Milliseconds that the gateway's clock is ahead of the sign-ins. */
let aheadMs = 0;
const stale = 16 * 60_000;
const clock = {
  nowMs: () => systemClock.nowMs() + aheadMs,
  monotonicMs: () => systemClock.monotonicMs(),
  livedMs: () => systemClock.livedMs(),
};

let scene: OperatorScene;
let app: AppSide;
let member: Browser;
let memberId = "";
let ownersHome = "";
beforeAll(async () => {
  scene = await startOperatorScene(undefined, { sandbox: true }, { clock });
  app = new AppSide(scene.gateway().baseUrl);
  ({ browser: member, id: memberId } = await scene.person("member"));
  ownersHome = textAt(await scene.owner.json("GET", "/session"), "workspace.id");
}, 240_000);
afterAll(() => scene.stop());

const hasAdminTools = async (secret: string): Promise<boolean> =>
  (await toolNames(`${scene.gateway().origin}/mcp`, secret)).some((name) =>
    name.startsWith("admin_"),
  );

/** Asks in a workspace of the organisation. */
async function inOrganization<Answer>(browser: Browser, ask: () => Promise<Answer>) {
  const organization = await scene.owner.json("GET", `/organizations/${scene.organizationId}`);
  browser.headers = { "x-service-workspace": textAt(organization, "workspace_id") };
  try {
    return await ask();
  } finally {
    browser.headers = {};
  }
}

/** A key with which the owner may use the operators' tools. */
async function operatorsKey(): Promise<{ secret: string; hash: string; id: string }> {
  const made = await scene.owner.json("POST", "/keys", { name: "mine", operator: true });
  expect(at(made, "data.operator")).toBe(true);
  const secret = textAt(made, "key");
  expect(await hasAdminTools(secret)).toBe(true);
  return { secret, hash: textAt(made, "data.hash"), id: textAt(made, "data.id") };
}

const everything = { allowed_endpoints: null };

describe("keys that an operator created without naming the right", () => {
  test("an operator's key of an organisation grants a member who rotates it nothing", async () => {
    const made = await inOrganization(scene.owner, () =>
      scene.owner.json("POST", "/keys", { name: "of the team" }),
    );
    const rotated = await inOrganization(member, async () => {
      const path = `/keys/${textAt(made, "data.hash")}`;
      await member.json("PATCH", path, everything);
      return member.json("POST", `${path}/rotate`);
    });
    expect(await hasAdminTools(textAt(rotated, "key"))).toBe(false);
  });

  test("a management key with write:llm-keys obtains nothing by an operator's key", async () => {
    const made = await scene.owner.json("POST", "/keys", { name: "plain" });
    const { key: secret } = (await scene.owner.json("POST", "/management-keys", {
      name: "keys only",
      scopes: ["write:llm-keys"],
    })) as { key: string };
    const path = `/keys/${textAt(made, "data.hash")}`;
    expect((await scene.withKey(secret, "PATCH", path, everything)).status).toBe(200);
    const rotated: unknown = await (await scene.withKey(secret, "POST", `${path}/rotate`)).json();
    expect(await hasAdminTools(textAt(rotated, "key"))).toBe(false);
  });

  test("an app that an operator approved at /auth is for inference alone", async () => {
    const code = await keyCode(scene.owner);
    const answer = await app.json("/auth/keys", { code, code_verifier: verifier });
    const secret = textAt(await answer.json(), "key");
    expect(await hasAdminTools(secret)).toBe(false);
    const statuses = await Promise.all(
      [
        app.as(secret, "GET", "/credits"),
        app.as(secret, "POST", "/key/children", { name: "child" }),
        app.as(secret, "POST", "/auth/keys/code", {}),
        app.as(secret, "POST", "/mcp", {}),
        app.as(secret, "GET", "/key"),
        app.as(secret, "POST", "/chat/completions", {
          model: "sandbox/chat:free",
          messages: [{ role: "user", content: "hello" }],
        }),
      ].map(async (sent) => (await sent).status),
    );
    expect(statuses).toEqual([403, 403, 403, 403, 200, 200]);
  });

  test("the page of /auth says what the app's key may not do", async () => {
    const query = new URLSearchParams({
      callback_url: "https://app.example/callback",
      code_challenge: "c".repeat(43),
    });
    const page = await (await scene.owner.ask("GET", `/auth?${query.toString()}`)).text();
    expect(page).toContain("It cannot see your balance, create keys");
  });

  test("an app's key of an organisation creates no key in its approver's personal workspace", async () => {
    const made = await inOrganization(scene.owner, () =>
      scene.owner.json("POST", "/keys", { name: "shared", ...everything }),
    );
    const asked = await app.as(textAt(made, "key"), "POST", "/auth/keys/code", {
      callback_url: "https://app.example/callback",
      code_challenge: verifier,
      code_challenge_method: "plain",
    });
    const code = textAt(await asked.json(), "data.id");
    const answer: unknown = await (
      await app.json("/auth/keys", { code, code_verifier: verifier })
    ).json();
    const described: unknown = await (await app.as(textAt(answer, "key"), "GET", "/key")).json();
    expect(at(described, "data.workspace_id")).not.toBe(ownersHome);
  });
});

describe("giving an operator's rights", () => {
  const giving = async (browser: Browser): Promise<number> =>
    (await browser.api("POST", "/keys", { name: "k", operator: true })).status;

  test("is for operators, in their personal workspace, within 15 minutes after signing in", async () => {
    expect(await giving(member)).toBe(403);
    expect(await inOrganization(scene.owner, () => giving(scene.owner))).toBe(403);
    aheadMs = stale;
    const refused = await scene.owner.api("POST", "/keys", { name: "k", operator: true });
    aheadMs = 0;
    expect([refused.status, at(await refused.json(), "error.param")]).toEqual([403, "operator"]);
    expect(await giving(scene.owner)).toBe(200);
  });

  test("is refused to keys and apps, even those of operators", async () => {
    const { secret, hash } = await operatorsKey();
    const wanted = { name: "k", operator: true };
    const asked = await Promise.all([
      app.as(secret, "POST", "/key/children", wanted),
      scene.withKey(testManagementKey, "POST", "/keys", wanted),
      scene.withKey(testManagementKey, "PATCH", `/keys/${hash}`, { operator: true }),
      scene.withKey(testManagementKey, "POST", `/keys/${hash}/children`, wanted),
    ]);
    expect(asked.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  });

  test("needs a secret that was shown to the operator alone", async () => {
    const made: unknown = await (
      await scene.withKey(testManagementKey, "POST", "/keys", { name: "by automation" })
    ).json();
    const path = `/keys/${textAt(made, "data.hash")}`;
    expect((await scene.owner.api("PATCH", path, { operator: true })).status).toBe(409);
    const rotated = await scene.owner.json("POST", `${path}/rotate`, { grace_seconds: 60 });
    const given = await scene.owner.json("PATCH", `/keys/${textAt(rotated, "data.hash")}`, {
      operator: true,
    });
    expect(at(given, "data.operator")).toBe(true);
    expect(await hasAdminTools(textAt(rotated, "key"))).toBe(true);
    // The program that knows the old secret gains nothing during the grace period.
    expect(await hasAdminTools(textAt(made, "key"))).toBe(false);
  });

  test("shows in lists, in GET /key, in the list of credentials and in both audit logs", async () => {
    const { secret, id } = await operatorsKey();
    const isListed = async (path: string): Promise<unknown> =>
      at(
        listAt(await scene.owner.json("GET", path), "data").find((key) => at(key, "id") === id),
        "operator",
      );
    expect(await isListed("/keys")).toBe(true);
    expect(await isListed("/security/keys")).toBe(true);
    expect(at(await (await app.as(secret, "GET", "/key")).json(), "data.operator")).toBe(true);
    const log = listAt(await scene.owner.json("GET", `/security/audit?target=${id}`), "data");
    expect(log.map((entry) => at(entry, "action"))).toContain("give a key operator's rights");
  });
});

describe("an operator's rights are lost", () => {
  const ways: Record<string, (hash: string) => Promise<unknown>> = {
    "by the operator's own rotation": (hash) => scene.owner.json("POST", `/keys/${hash}/rotate`),
    "by a management key's change": (hash) =>
      scene.withKey(testManagementKey, "PATCH", `/keys/${hash}`, { name: "renamed" }),
    "by a management key's rotation": (hash) =>
      scene.withKey(testManagementKey, "POST", `/keys/${hash}/rotate`, { grace_seconds: 60 }),
    "by the operator's change with an old session": async (hash) => {
      aheadMs = stale;
      await scene.owner.json("PATCH", `/keys/${hash}`, { name: "renamed" });
      aheadMs = 0;
    },
    "by the operator's request": (hash) =>
      scene.owner.json("PATCH", `/keys/${hash}`, { operator: false }),
  };
  test.each(Object.entries(ways))("%s", async (_, lose) => {
    const { secret, id, hash } = await operatorsKey();
    await lose(hash);
    const rest = listAt(await scene.owner.json("GET", "/keys"), "data");
    expect(
      at(
        rest.find((key) => at(key, "id") === id),
        "operator",
      ),
    ).toBe(false);
    expect(await hasAdminTools(secret)).toBe(false);
    const log = listAt(await scene.owner.json("GET", `/security/audit?target=${id}`), "data");
    expect(log.map((entry) => at(entry, "action"))).toContain("take operator's rights from a key");
  });

  test("not by the operator's own change shortly after signing in", async () => {
    const { secret, hash } = await operatorsKey();
    const changed = await scene.owner.json("PATCH", `/keys/${hash}`, { name: "renamed" });
    expect(at(changed, "data.operator")).toBe(true);
    expect(await hasAdminTools(secret)).toBe(true);
  });

  test("when their operator is no longer one, and do not return with the office", async () => {
    await scene.owner.json("PATCH", `/admin/users/${memberId}`, { operator: true });
    const made = await member.json("POST", "/keys", { name: "k", operator: true });
    expect(await hasAdminTools(textAt(made, "key"))).toBe(true);
    for (const operator of [false, true])
      await scene.owner.json("PATCH", `/admin/users/${memberId}`, { operator });
    expect(await hasAdminTools(textAt(made, "key"))).toBe(false);
    await scene.owner.json("PATCH", `/admin/users/${memberId}`, { operator: false });
  });
});
