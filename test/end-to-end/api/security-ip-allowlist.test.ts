import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { startPeopled } from "./people-browser.ts";
import { engines, startTwoWorkspaces, strangersKey, type TwoWorkspaces } from "./two-workspaces.ts";

const office = "203.0.113.7";
const elsewhere = "198.51.100.9";

interface Sent {
  from?: string;
  secret?: string;
  body?: unknown;
}

describe.each(engines)("the IP allowlist on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl, { trustProxy: true, sandbox: true });
  }, 240_000);
  afterAll(() => workspaces.stop());

  const ask = (
    method: string,
    path: string,
    { from = office, secret = testManagementKey, body }: Sent = {},
  ): Promise<Response> =>
    fetch(workspaces.gateway().baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${secret}`, "x-forwarded-for": from },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const list = async (secret = testManagementKey): Promise<unknown[]> =>
    listAt(await (await ask("GET", "/security/ip-allowlist", { secret })).json(), "data");
  const add = (body: Record<string, unknown>, from?: string): Promise<Response> =>
    ask("POST", "/security/ip-allowlist", { body, ...(from === undefined ? {} : { from }) });
  const clear = async (): Promise<void> => {
    for (const entry of await list())
      await ask("DELETE", `/security/ip-allowlist/${textAt(entry, "id")}?confirm=true`);
  };
  const chat = (from: string): Promise<Response> =>
    ask("POST", "/chat/completions", {
      from,
      secret: testLlmKey,
      body: { model: "sandbox/chat:free", messages: [{ role: "user", content: "Hello" }] },
    });

  test("adding an entry blocks other addresses on every kind of route until it is deleted", async () => {
    const response = await add({ cidr: "203.0.113.99/24", description: "The office" });
    expect(response.status).toBe(200);
    const entry: unknown = await response.json();
    expect(entry).toEqual({
      id: expect.stringMatching(/^ipa_[0-9a-f]{32}$/),
      cidr: "203.0.113.0/24",
      description: "The office",
      created_at: expect.any(String),
    });
    expect(await list()).toEqual([entry]);
    const refusals = [
      await ask("GET", "/keys", { from: elsewhere }),
      await ask("DELETE", `/security/ip-allowlist/${textAt(entry, "id")}`, { from: elsewhere }),
      await ask("GET", "/credits", { from: elsewhere, secret: testLlmKey }),
      await ask("GET", "/models", { from: elsewhere, secret: testLlmKey }),
      await chat(elsewhere),
    ];
    for (const refused of refusals) {
      expect(await errorOf(refused)).toMatchObject({
        status: 403,
        code: "ip_not_allowed",
        type: "permission_error",
      });
    }
    expect(
      (
        await fetch(`${workspaces.gateway().baseUrl}/models`, {
          headers: { "x-forwarded-for": elsewhere },
        })
      ).status,
    ).toBe(200);
    const answers = [
      await chat(office),
      await chat("::ffff:203.0.113.8"),
      await ask("GET", "/keys"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    await clear();
    expect((await chat(elsewhere)).status).toBe(200);
  });

  test("adding or deleting an entry that locks the caller out needs confirmation", async () => {
    const refused = await errorOf(await add({ cidr: "192.0.2.0/24" }));
    expect(refused).toMatchObject({ status: 400, code: "bad_request", param: "confirm" });
    expect(at(refused.metadata, "caller_address")).toBe(office);
    expect(await list()).toEqual([]);
    expect((await add({ cidr: office })).status).toBe(200);
    expect((await add({ cidr: "2001:db8::/32" })).status).toBe(200);
    const [, own] = await list();
    const path = `/security/ip-allowlist/${textAt(own, "id")}`;
    expect(await errorOf(await ask("DELETE", path))).toMatchObject({
      status: 400,
      param: "confirm",
    });
    expect((await ask("DELETE", path, { body: { confirm: true } })).status).toBe(200);
    expect((await ask("GET", "/keys")).status).toBe(403);
    const [last] = listAt(
      await (await ask("GET", "/security/ip-allowlist", { from: "2001:db8::5" })).json(),
      "data",
    );
    // The last entry gone, every address is let in again: that needs no confirmation.
    const gone = await ask("DELETE", `/security/ip-allowlist/${textAt(last, "id")}`, {
      from: "2001:db8::5",
    });
    expect(await gone.json()).toEqual({ deleted: true, id: textAt(last, "id") });
    expect((await ask("GET", "/keys")).status).toBe(200);
  });

  test("a key refused by the allowlist does not count as used", async () => {
    const created: unknown = await (
      await ask("POST", "/keys", { body: { name: "stolen" } })
    ).json();
    await add({ cidr: office });
    const refused = await ask("GET", "/credits", {
      from: elsewhere,
      secret: textAt(created, "key"),
    });
    const keys = listAt(await (await ask("GET", "/security/keys")).json(), "data");
    const key = keys.find((each) => at(each, "id") === textAt(created, "data.id"));
    expect([refused.status, at(key, "last_used_at")]).toEqual([403, null]);
    await clear();
  });

  test.each([
    [{}, 400, "cidr"],
    [{ cidr: "not an address" }, 400, "cidr"],
    [{ cidr: "10.0.0.0/33" }, 400, "cidr"],
    [{ cidr: "0x7f.1" }, 400, "cidr"],
    [{ cidr: office, confirm: "yes" }, 400, "confirm"],
    [{ cidr: office, description: 5 }, 400, "description"],
  ])("%j returns an error that names the field", async (body, status, param) => {
    expect(await errorOf(await add(body))).toMatchObject({ status, param });
    expect(await list()).toEqual([]);
  });

  test("a range is listed once, even when added twice in parallel", async () => {
    const answers = await Promise.all([
      add({ cidr: "203.0.113.0/24" }),
      add({ cidr: "203.0.113.128/24" }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    await clear();
  });

  test("each workspace has its own allowlist, and it survives a restart", async () => {
    await add({ cidr: `${office}/32` });
    const [entry] = await list();
    expect(await list(strangersKey)).toEqual([]);
    const path = `/security/ip-allowlist/${textAt(entry, "id")}`;
    expect((await ask("DELETE", path, { secret: strangersKey })).status).toBe(404);
    expect((await ask("GET", "/keys", { from: elsewhere, secret: strangersKey })).status).toBe(200);
    await workspaces.restart();
    expect(await list()).toEqual([entry]);
    expect((await chat(elsewhere)).status).toBe(403);
    await clear();
  });
});

test("someone locked out can only read the session, switch workspaces and end sessions", async () => {
  const peopled = await startPeopled(undefined, { trustProxy: true });
  const { owner } = peopled;
  owner.headers = { "x-forwarded-for": office };
  const shared = textAt(
    await owner.json("POST", "/organizations", { name: "Acme" }),
    "workspace_id",
  );
  const own = textAt(await owner.json("GET", "/session"), "workspace.id");
  await owner.json("PATCH", "/session", { workspace_id: shared });
  await owner.json("POST", "/security/ip-allowlist", { cidr: office });
  owner.headers = { "x-forwarded-for": elsewhere };
  const refused: [string, string, unknown?][] = [
    ["GET", "/keys"],
    ["POST", "/keys", { name: "x" }],
    ["GET", "/credits"],
    ["GET", "/organizations"],
    ["GET", "/security/ip-allowlist"],
    ["GET", "/admin/users"],
    ["PATCH", `/workspaces/${shared}`, { name: "x" }],
  ];
  for (const [method, path, body] of refused) {
    expect(await errorOf(await owner.api(method, path, body))).toMatchObject({
      status: 403,
      code: "ip_not_allowed",
    });
  }
  expect(await owner.json("GET", "/session")).toMatchObject({ workspace: { id: shared } });
  expect(listAt(await owner.json("GET", "/workspaces"), "data")).toHaveLength(2);
  expect(listAt(await owner.json("GET", "/sessions"), "data")).toHaveLength(1);
  await owner.json("PATCH", "/session", { workspace_id: own });
  expect((await owner.api("GET", "/keys")).status).toBe(200);
  expect(await owner.json("DELETE", "/sessions")).toMatchObject({ deleted: true });
  await peopled.stop();
});
