import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme } from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { allEngines } from "../api/two-workspaces.ts";
import { startOperatorScene, type OperatorScene } from "./operator-scene.ts";

/** Starts a provider that answers until `fail` is called. */
function startUpstream(): { url: string; fail(): void; stop(): void } {
  let failing = false;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      failing
        ? new Response("broken", { status: 500 })
        : Response.json({
            id: "x",
            object: "chat.completion",
            created: 1,
            model: "large-v2",
            choices: [
              { index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" },
            ],
            usage: { prompt_tokens: 1000, completion_tokens: 1000, total_tokens: 2000 },
          }),
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    fail: () => {
      failing = true;
    },
    stop: () => void server.stop(true),
  };
}

describe.each(allEngines)("service administration for operators, on %s", (_, freshUrl) => {
  const upstream = startUpstream();
  let scene: OperatorScene;
  beforeAll(async () => {
    scene = await startOperatorScene(
      await freshUrl(),
      {
        providers: [acme(upstream.url, { budget_usd_per_day: 5 })],
        plans: { pro: { perMinute: 7, monthlyCreditsNanoUsd: 20_000_000_000n } },
      },
      { clock: middayClock() },
    );
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    upstream.stop();
  });

  test("lists workspaces with balances, searches them and changes a plan immediately", async () => {
    const { browser } = await scene.person("paul");
    const id = textAt(await browser.json("GET", "/session"), "workspace.id");
    const key = textAt(await browser.json("POST", "/keys", { name: "own" }), "key");
    await scene.automation("POST", "/admin/grants", {
      workspace_id: id,
      amount: 2,
      bucket: "topup",
    });
    expect(await scene.owner.json("GET", `/admin/workspaces?search=${id}`)).toMatchObject({
      total: 1,
      has_more: false,
      data: [
        {
          id,
          object: "workspace",
          plan: "free",
          blocked: false,
          owner_email: "paul@example.com",
          balance: 2,
          topup_balance: 2,
          used: 0,
        },
      ],
    });
    expect(await scene.owner.json("GET", "/admin/workspaces?search=PAUL@example")).toMatchObject({
      total: 1,
      data: [{ id }],
    });
    const changed = await scene.owner.json("PATCH", `/admin/workspaces/${id}`, { plan: "pro" });
    expect(changed).toMatchObject({ id, plan: "pro" });
    expect((await scene.withKey(key, "GET", "/models")).headers.get("x-ratelimit-limit")).toBe("7");
    const shown = await scene.owner.json("GET", `/admin/workspaces/${id}`);
    expect(shown).toMatchObject({ plan: "pro", members: 1, llm_keys: 1, management_keys: 0 });
    expect([at(changed, "owner_email"), at(shown, "owner_email")]).toEqual([
      "paul@example.com",
      "paul@example.com",
    ]);
    // The workspace's own log says what operators did to it.
    const log = listAt(await browser.json("GET", "/security/audit"), "data");
    expect(log.map((entry) => at(entry, "action"))).toEqual(
      expect.arrayContaining(["POST /admin/grants", "PATCH /admin/workspaces/:id"]),
    );
    expect(
      listAt(await scene.owner.json("GET", "/admin/workspaces?plan=pro"), "data").map((each) =>
        at(each, "id"),
      ),
    ).toEqual([id]);
    const plans = listAt(await scene.owner.json("GET", "/admin/plans"), "data");
    expect(plans.find((plan) => at(plan, "id") === "pro")).toMatchObject({
      requests_per_minute: 7,
      monthly_credits: 20,
      workspaces: 1,
    });
    expect(plans.find((plan) => at(plan, "id") === "go")).toMatchObject({
      requests_per_minute: 60,
      five_hour_requests: 3000,
    });
    const gold = await scene.owner.api("PATCH", `/admin/workspaces/${id}`, { plan: "gold" });
    expect(await errorOf(gold)).toMatchObject({ status: 400, param: "plan" });
    expect(
      (await scene.owner.api("PATCH", "/admin/workspaces/ws_none", { plan: "pro" })).status,
    ).toBe(404);
  });

  test("blocks an organization's workspace with its keys, and a personal one only through its owner", async () => {
    const { browser } = await scene.person("quinn");
    const own = textAt(await browser.json("GET", "/session"), "workspace.id");
    const shared = textAt(
      await browser.json("POST", "/organizations", { name: "Shared" }),
      "workspace_id",
    );
    await browser.json("PATCH", "/session", { workspace_id: shared });
    const key = textAt(await browser.json("POST", "/keys", { name: "shared" }), "key");
    await scene.owner.json("PATCH", `/admin/workspaces/${shared}`, { blocked: true });
    expect((await scene.withKey(key, "GET", "/models")).status).toBe(401);
    expect(await browser.json("GET", "/session")).toMatchObject({ workspace: { id: own } });
    await scene.owner.json("PATCH", `/admin/workspaces/${shared}`, { blocked: false });
    expect((await scene.withKey(key, "GET", "/models")).status).toBe(200);
    expect(await browser.json("GET", "/session")).toMatchObject({ workspace: { id: shared } });
    const first = textAt(await scene.owner.json("GET", "/session"), "workspace.id");
    for (const id of [own, first]) {
      const refused = await errorOf(
        await scene.owner.api("PATCH", `/admin/workspaces/${id}`, { blocked: true }),
      );
      expect(refused).toMatchObject({ status: 409, param: "blocked" });
    }
  });

  test("grants credits to a user's personal workspace by user id", async () => {
    const { browser, id } = await scene.person("rosa");
    expect(
      (await scene.automation("POST", "/admin/grants", { user_id: id, amount: 3 })).status,
    ).toBe(200);
    expect(await browser.json("GET", "/credits")).toMatchObject({ balance: 3, monthly_balance: 3 });
    const both = { user_id: id, workspace_id: "ws_none", amount: 3 };
    expect(await errorOf(await scene.automation("POST", "/admin/grants", both))).toMatchObject({
      status: 400,
      param: "workspace_id",
    });
    expect(
      (await scene.automation("POST", "/admin/grants", { user_id: "usr_none", amount: 3 })).status,
    ).toBe(404);
  });

  test("usage, upstreams and the overview match the requests sent", async () => {
    const answer = await scene.gateway().post("/chat/completions", {
      model: "acme/large",
      messages: [{ role: "user", content: "hi" }],
    });
    expect(answer.status).toBe(200);
    const cost = 0.002;
    const day = {
      requests: 1,
      errors: 0,
      prompt_tokens: 1000,
      completion_tokens: 1000,
      cost,
      attempts: 1,
      failures: 0,
    };
    const first = textAt(await scene.owner.json("GET", "/session"), "workspace.id");
    const usage = async (group: string): Promise<unknown> =>
      at(await scene.owner.json("GET", `/admin/usage?days=2&group_by=${group}`), "data");
    expect(await usage("day")).toEqual([
      { id: expect.stringMatching(/^\d{4}-\d\d-\d\d$/), ...day },
    ]);
    expect(await usage("model")).toEqual([{ id: "acme/large", ...day }]);
    expect(await usage("provider")).toEqual([{ id: "acme", ...day }]);
    expect(await usage("workspace")).toEqual([{ id: first, requests: 1, errors: 0, cost }]);
    expect(await scene.owner.json("GET", "/admin/upstreams")).toMatchObject({
      data: [
        {
          id: "acme",
          routed: true,
          states: [],
          last_hour: { requests: 1, errors: 0 },
          budget: { limit: 5, spent: cost },
          smoke_test: null,
        },
      ],
    });
    expect(await scene.owner.json("GET", "/admin/overview")).toMatchObject({
      version: "0.0.0-test",
      users: { operators: 1, blocked: 0 },
      upstreams: { routed: 1, in_trouble: 0 },
      days: 30,
      usage: day,
    });
    expect((await scene.owner.api("GET", "/admin/usage?days=0")).status).toBe(400);
    expect((await scene.owner.api("GET", "/admin/usage?group_by=user")).status).toBe(400);
  });

  test("shows a failing provider with its state and clears it", async () => {
    const shown = async (): Promise<unknown> =>
      at(await scene.owner.json("GET", "/admin/upstreams"), "data.0");
    upstream.fail();
    for (let tries = 0; tries < 50 && listAt(await shown(), "states").length === 0; tries += 1) {
      await scene.gateway().post("/chat/completions", {
        model: "acme/large",
        messages: [{ role: "user", content: "hi" }],
      });
    }
    expect(await shown()).toMatchObject({
      states: ["deprioritized"],
      last_failure_at: expect.any(String),
      quarantined_until: null,
    });
    const cleared = await scene.owner.json("POST", "/admin/upstreams/acme/clear");
    expect(cleared).toMatchObject({ id: "acme", states: [], failures_in_row: 0 });
    expect((await scene.owner.api("POST", "/admin/upstreams/none/clear")).status).toBe(404);
  });
});
