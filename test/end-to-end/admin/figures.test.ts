import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { SmokeAnswer } from "../../../src/insights/health/smoke-tests.ts";
import { acme } from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { at, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { allEngines } from "../api/two-workspaces.ts";
import { startOperatorScene, type OperatorScene } from "./operator-scene.ts";

const hello = { model: "acme/large", messages: [{ role: "user", content: "hi" }] };

describe.each(allEngines)("service figures for operators, on %s", (_, freshUrl) => {
  let broken = false;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      broken
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
  let answering: Promise<SmokeAnswer> = Promise.resolve({ outcome: "passed", latencyMs: 12 });
  const asked: string[] = [];
  const smoke = {
    providerIds: () => ["acme"],
    ask: (id: string) => {
      asked.push(id);
      return answering;
    },
  };
  let scene: OperatorScene;
  beforeAll(async () => {
    scene = await startOperatorScene(
      await freshUrl(),
      { providers: [acme(`http://127.0.0.1:${server.port}/v1`)] },
      { smoke, clock: middayClock() },
    );
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    await server.stop(true);
  });

  test("shows usage beyond a balance as uncollected, by workspace and model", async () => {
    const { browser } = await scene.person("ulla");
    const id = textAt(await browser.json("GET", "/session"), "workspace.id");
    const key = textAt(await browser.json("POST", "/keys", { name: "own" }), "key");
    await scene.automation("POST", "/admin/grants", {
      workspace_id: id,
      amount: 0.0015,
      bucket: "topup",
    });
    expect(
      (await scene.withKey(key, "POST", "/chat/completions", { ...hello, max_tokens: 100 })).status,
    ).toBe(200);
    expect(await scene.owner.json("GET", "/admin/overview")).toMatchObject({
      usage: { requests: 1, cost: 0.0015 },
      today: { requests: 1, errors: 0, cost: 0.0015 },
      uncollected: {
        requests: 1,
        cost: 0.0005,
        data: [{ workspace_id: id, model: "acme/large", requests: 1, cost: 0.0005 }],
      },
    });
  });

  test("lists errors by provider, most frequent first, and limits the days parameter", async () => {
    broken = true;
    expect((await scene.gateway().post("/chat/completions", hello)).status).toBeGreaterThanOrEqual(
      500,
    );
    broken = false;
    const first = textAt(await scene.owner.json("GET", "/session"), "workspace.id");
    const shown = await scene.owner.json("GET", "/admin/errors");
    expect(shown).toMatchObject({
      object: "errors_overview",
      requests: 2,
      errors: 1,
      error_rate: 0.5,
      providers: [{ id: "acme", errors: 1 }],
      models: [{ id: "acme/large", errors: 1 }],
      workspaces: [{ id: first, requests: 1, errors: 1 }],
    });
    expect(at(shown, "from")).toBe(at(shown, "to"));
    for (const path of ["/admin/errors", "/admin/north-star", "/admin/overview"])
      for (const days of ["0", "367", "1.5", "x"]) {
        expect(await errorOf(await scene.owner.api("GET", `${path}?days=${days}`))).toMatchObject({
          status: 400,
          param: "days",
        });
      }
  });

  test("the north star counts active users and compares with the previous days", async () => {
    const none = {
      active_workspaces: 0,
      active_keys: 0,
      new_workspaces: 0,
      requests: 0,
      success_rate: null,
      tokens: 0,
      cost: 0,
    };
    expect(await scene.owner.json("GET", "/admin/north-star?days=7")).toMatchObject({
      object: "north_star",
      days: 7,
      active_workspaces: 2,
      active_keys: 2,
      requests: 2,
      success_rate: 0.5,
      tokens: 2000,
      cost: 0.0015,
      before: none,
    });
  });

  test("smoke tests run on request, one run at a time, and their results are listed", async () => {
    expect(await scene.owner.json("GET", "/admin/smoke-tests")).toEqual({
      object: "list",
      data: [],
    });
    const passed = await scene.owner.json("POST", "/admin/smoke-tests");
    expect(passed).toEqual({
      object: "list",
      data: [
        {
          object: "smoke_test",
          provider: "acme",
          at: expect.any(String),
          outcome: "passed",
          latency_ms: 12,
          message: null,
        },
      ],
    });
    expect(await scene.owner.json("GET", "/admin/smoke-tests")).toEqual(passed);
    const held = Promise.withResolvers<SmokeAnswer>();
    answering = held.promise;
    const running = scene.owner.json("POST", "/admin/smoke-tests", { provider: "acme" });
    while (asked.length < 2) await Bun.sleep(1);
    expect((await scene.owner.api("POST", "/admin/smoke-tests")).status).toBe(409);
    held.resolve({ outcome: "failed", message: "the provider answered 500" });
    expect(await running).toMatchObject({
      data: [{ outcome: "failed", latency_ms: null, message: "the provider answered 500" }],
    });
    expect((await scene.owner.api("POST", "/admin/smoke-tests", { provider: "none" })).status).toBe(
      404,
    );
    expect(
      (await scene.owner.api("POST", "/admin/smoke-tests", { providers: "acme" })).status,
    ).toBe(400);
  });
});
