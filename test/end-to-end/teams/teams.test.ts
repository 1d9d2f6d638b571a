import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, testManagementKey } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { chatRequest } from "../api/chat-request.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const costUsd = 0.000016;
/** Enough for three requests, each of which is held at 0.000023. */
const threeUsd = 0.00006;

describe.each(engines)("teams on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, { providers: [acme(upstream.baseUrl)] });
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const own = async (method: string, path: string, body?: unknown): Promise<unknown> =>
    (await workspaces.own(method, path, body)).json();
  const statusOf = async (method: string, path: string, body?: unknown): Promise<number> =>
    (await workspaces.own(method, path, body)).status;
  const teamWith = async (name: string, fields: object = {}): Promise<string> =>
    textAt(await own("POST", "/teams", { name, ...fields }), "id");
  const keyIn = async (teamId: string | null, fields: object = {}) => {
    const made = await own("POST", "/keys", { name: "k", team_id: teamId, ...fields });
    return { key: textAt(made, "key"), hash: textAt(made, "data.hash"), made };
  };
  const chat = async (key: string, fields: object = {}): Promise<number> => {
    const answer = await fetch(`${workspaces.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(chatRequest({ max_tokens: 7, ...fields })),
    });
    await answer.text();
    return answer.status;
  };
  const served = async (keys: readonly string[]): Promise<number> =>
    (await Promise.all(keys.map((key) => chat(key)))).filter((status) => status === 200).length;

  test("its keys, their keys and runs share one limit, however many ask at once", async () => {
    const made = await own("POST", "/teams", { name: "Research", limit: threeUsd });
    expect(made).toMatchObject({
      object: "team",
      limit: threeUsd,
      period: "monthly",
      time_zone: "UTC",
      spent: 0,
      remaining: threeUsd,
      allowed_models: null,
      members: 0,
      keys: 0,
    });
    const id = textAt(made, "id");
    const one = await keyIn(id);
    expect(one.made).toMatchObject({ data: { team_id: id } });
    const child = await (
      await workspaces.as(one.key)("POST", "/key/children", { name: "c" })
    ).json();
    expect(child).toMatchObject({ data: { team_id: id } });
    const run = await (
      await workspaces.as(one.key)("POST", "/runs", { name: "r", limit: 1 })
    ).json();
    const other = await keyIn(id);
    const keys = [one.key, other.key, textAt(child, "key"), textAt(run, "key")];
    const count = await served(Array.from({ length: 40 }, (_, index) => keys[index % 4] ?? ""));
    expect(count).toBeGreaterThan(0);
    expect(count * costUsd).toBeLessThanOrEqual(threeUsd);
    for (let sent = 0; sent < 4; sent += 1) await chat(one.key);
    for (const key of keys) expect(await chat(key)).toBe(402);
    const refused = await fetch(`${workspaces.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${one.key}` },
      body: JSON.stringify(chatRequest({ max_tokens: 7 })),
    });
    expect(at(await refused.json(), "error.metadata")).toMatchObject({
      reason: "budget_reached",
      budget_name: "Research",
      budget_scope: "team",
      budget_subject: id,
    });
    const shown = await own("GET", "/teams/Research");
    expect(shown).toMatchObject({ id, spent: 3 * costUsd, keys: 2 });
    expect(at(shown, "remaining")).toBeCloseTo(threeUsd - 3 * costUsd, 9);
    // Keys of no team and of other teams go on.
    const apart = await keyIn(null);
    expect(await chat(apart.key)).toBe(200);
    await workspaces.restart();
    expect(await chat(other.key)).toBe(402);
    expect(await statusOf("PATCH", `/teams/${id}`, { limit: 1 })).toBe(200);
    expect(await chat(other.key)).toBe(200);
    expect(await statusOf("PATCH", `/teams/${id}`, { limit: null })).toBe(200);
    expect(await own("GET", `/teams/${id}`)).toMatchObject({
      limit: null,
      remaining: null,
      budget_id: null,
      spent: 4 * costUsd,
    });
  });

  test("its models bound its keys within their own lists, at once", async () => {
    const id = await teamWith("Models", { allowed_models: ["sandbox/other"] });
    const free = await keyIn(id);
    const narrow = await keyIn(id, { allowed_models: ["acme/large"] });
    const child = textAt(
      await (await workspaces.as(free.key)("POST", "/key/children", { name: "c" })).json(),
      "key",
    );
    for (const key of [free.key, narrow.key, child]) expect(await chat(key)).toBe(403);
    await own("PATCH", `/teams/${id}`, { allowed_models: ["ACME/large", "sandbox/other"] });
    for (const key of [free.key, narrow.key]) expect(await chat(key)).toBe(200);
    await own("PATCH", `/keys/${narrow.hash}`, { allowed_models: ["sandbox/other"] });
    expect(await chat(narrow.key)).toBe(403);
    // What the key itself allows is kept and shown.
    expect(await own("GET", `/keys/${free.hash}`)).toMatchObject({ allowed_models: null });
    expect(await own("GET", `/keys/${narrow.hash}`)).toMatchObject({
      allowed_models: ["sandbox/other"],
    });
    await workspaces.restart();
    expect(await chat(narrow.key)).toBe(403);
    await own("PATCH", `/teams/${id}`, { allowed_models: null });
    expect(await chat(free.key)).toBe(200);
  });

  test("a key that moves leaves its past with its former team", async () => {
    const [from, to] = [await teamWith("From"), await teamWith("To", { limit: 1 })];
    const { key, hash } = await keyIn(from);
    expect(await chat(key)).toBe(200);
    expect(await own("PATCH", `/keys/${hash}`, { team_id: to })).toMatchObject({
      data: { team_id: to },
    });
    expect(await chat(key)).toBe(200);
    for (const id of [from, to])
      expect(at(await own("GET", `/teams/${id}`), "spent")).toBe(costUsd);
    expect(listAt(await own("GET", `/keys?team=${to}`), "data")).toHaveLength(1);
    const rows = listAt(await own("GET", `/analytics/generations?team_id=${from}`), "data");
    expect(rows).toMatchObject([{ team_id: from }]);
    const lines = listAt(await own("GET", "/analytics/usage?group_by=team"), "data");
    expect(lines.filter((each) => [from, to].includes(String(at(each, "team_id"))))).toHaveLength(
      2,
    );
    await own("PATCH", `/keys/${hash}`, { team_id: null });
    expect(await chat(key)).toBe(200);
    expect(at(await own("GET", `/teams/${to}`), "spent")).toBe(costUsd);
  });

  test("is deleted with its keys or without them, as the caller says", async () => {
    const id = await teamWith("Doomed", { limit: 0.000001 });
    const { key, hash } = await keyIn(id);
    expect(await chat(key)).toBe(402);
    const refused = await workspaces.own("DELETE", `/teams/${id}`);
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringContaining("has a key."), metadata: { keys: 1 } },
    });
    expect(await own("DELETE", `/teams/${id}?keys=keep`)).toEqual({
      deleted: true,
      id,
      deleted_keys: 0,
    });
    expect(await chat(key)).toBe(200);
    expect(await own("GET", `/keys/${hash}`)).toMatchObject({ team_id: null });
    const budgets = listAt(await own("GET", "/budgets"), "data");
    expect(budgets.filter((each) => at(each, "subject") === id)).toEqual([]);
    expect(await statusOf("GET", `/teams/${id}`)).toBe(404);
    const next = await teamWith("Doomed");
    const second = await keyIn(next);
    expect(await own("DELETE", `/teams/${next}?keys=delete`)).toMatchObject({ deleted_keys: 1 });
    expect(await chat(second.key)).toBe(401);
    await workspaces.restart();
    expect([await chat(key), await chat(second.key)]).toEqual([200, 401]);
  });

  test("its budget may begin on a day and in a time zone, and takes alerts", async () => {
    const made = await own("POST", "/teams", {
      name: "Zoned",
      limit: 1,
      period: "weekly",
      reset_day: 7,
      time_zone: "Asia/Kolkata",
    });
    expect(made).toMatchObject({ period: "weekly", reset_day: 7, time_zone: "Asia/Kolkata" });
    expect(textAt(made, "period_start")).toEndWith("T18:30:00.000Z");
    const { key } = await keyIn(textAt(made, "id"));
    expect(await chat(key)).toBe(200);
    expect(at(await own("GET", "/teams/Zoned"), "spent")).toBe(costUsd);
    const budget = await own("GET", `/budgets/${textAt(made, "budget_id")}`);
    expect(budget).toMatchObject({ scope: "team", action: "block", spent: costUsd });
    // Another period takes another budget, which goes on with what is known.
    const changed = await own("PATCH", "/teams/Zoned", { limit: threeUsd, period: "daily" });
    expect(changed).toMatchObject({ limit: threeUsd, period: "daily", time_zone: "UTC" });
    expect(at(changed, "spent")).toBe(costUsd);
    expect(at(changed, "budget_id")).not.toBe(at(made, "budget_id"));
    expect(await statusOf("GET", `/budgets/${textAt(made, "budget_id")}`)).toBe(404);
    // Of changes at once the last one's budget stays, and no other blocks beside it.
    const atOnce = (period: string): Promise<number> =>
      statusOf("PATCH", "/teams/Zoned", { limit: threeUsd, period });
    expect(await Promise.all([atOnce("weekly"), atOnce("monthly")])).toEqual([200, 200]);
    const left = listAt(await own("GET", "/budgets"), "data").filter(
      (each) => at(each, "subject") === textAt(made, "id"),
    );
    expect(left.map((each) => at(each, "id"))).toEqual([
      at(await own("GET", "/teams/Zoned"), "budget_id"),
    ]);
  });

  test("refuses what names no team, strangers, and credentials without the scope", async () => {
    const id = await teamWith("Own");
    expect(await statusOf("POST", "/teams", { name: "Own" })).toBe(409);
    const wrong = async (body: object): Promise<unknown> =>
      at(await own("POST", "/teams", { name: "Wrong", ...body }), "error.param");
    expect(await wrong({ period: "daily" })).toBe("period");
    expect(await wrong({ limit: 1, time_zone: "Mars/Olympus" })).toBe("time_zone");
    expect(await wrong({ limit: 1, period: "total", time_zone: "Asia/Kolkata" })).toBe("time_zone");
    expect(await wrong({ limit: 1, period: "daily", reset_day: 2 })).toBe("reset_day");
    expect(await statusOf("GET", "/teams/Wrong")).toBe(404);
    expect(await statusOf("POST", "/keys", { name: "k", team_id: "team_none" })).toBe(404);
    const strangers = await (await workspaces.stranger("POST", "/teams", { name: "Own" })).json();
    const foreign = textAt(strangers, "id");
    expect(await statusOf("POST", "/keys", { name: "k", team_id: foreign })).toBe(404);
    expect(
      await statusOf("POST", "/budgets", { name: "b", scope: "team", subject: foreign, limit: 1 }),
    ).toBe(400);
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["PATCH", "", { name: "Theirs" }],
      ["DELETE", "?keys=delete", undefined],
      ["GET", "/members", undefined],
      ["POST", "/members", { email: "a@example.com" }],
      ["DELETE", "/members/usr_1", undefined],
    ] as const)
      expect((await workspaces.stranger(method, `/teams/${id}${path}`, body)).status).toBe(404);
    const scoped = async (scopes: string[]): Promise<string> =>
      textAt(await own("POST", "/management-keys", { name: "m", scopes }), "key");
    const keysOnly = workspaces.as(await scoped(["write:llm-keys"]));
    expect((await keysOnly("POST", "/teams", { name: "More" })).status).toBe(403);
    expect((await keysOnly("PATCH", `/teams/${id}`, { limit: 5 })).status).toBe(403);
    expect((await keysOnly("GET", `/teams/${id}`)).status).toBe(200);
    const { hash, key } = await keyIn(id);
    expect((await keysOnly("PATCH", `/keys/${hash}`, { team_id: null })).status).toBe(403);
    expect((await keysOnly("PATCH", `/keys/${hash}`, { team_id: id })).status).toBe(200);
    const other = await teamWith("Other");
    const child = await workspaces.as(key)("POST", "/key/children", { name: "c", team_id: other });
    expect([child.status, at(await child.json(), "error.param")]).toEqual([400, "team_id"]);
    const audit = listAt(await own("GET", "/security/audit?limit=100"), "data");
    expect(audit).toContainEqual(expect.objectContaining({ action: "POST /teams", target: id }));
  });

  test("an Idempotency-Key makes one team", async () => {
    const post = async (): Promise<unknown> =>
      (
        await fetch(`${workspaces.gateway().baseUrl}/teams`, {
          method: "POST",
          headers: { authorization: `Bearer ${testManagementKey}`, "idempotency-key": "team-1" },
          body: JSON.stringify({ name: "Once", limit: 5 }),
        })
      ).json();
    expect(await post()).toEqual(await post());
  });
});
