import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dayMs, minuteMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { acme } from "../../support/gateway.ts";
import { startOperatorScene, type OperatorScene } from "../admin/operator-scene.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { isSigned, startMailServer, startWebhook } from "./receivers.ts";
import { allEngines } from "./two-workspaces.ts";

/** A provider whose every answer costs 0.002 USD. */
const startUpstream = () =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      Response.json({
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
const cost = 0.002;

/** Sessions end by the machine's clock, so this one stays behind it. */
const longAgo = (): FakeClock => new FakeClock(Date.UTC(2025, 2, 3, 12));

describe.each(allEngines)("budgets on %s", (_, freshUrl) => {
  const [upstream, mail, webhook, clock] = [
    startUpstream(),
    startMailServer(),
    startWebhook(),
    longAgo(),
  ];
  let scene: OperatorScene;
  beforeAll(async () => {
    scene = await startOperatorScene(
      await freshUrl(),
      {
        providers: [acme(`http://127.0.0.1:${upstream.port}/v1`)],
        mail: { url: mail.url, from: "Gateway <noreply@example.com>" },
        webhookNetworks: ["127.0.0.0/8"],
      },
      { clock },
    );
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    mail.stop();
    webhook.stop();
    await upstream.stop(true);
  });

  const create = (body: object): Promise<Response> =>
    scene.owner.api("POST", "/budgets", { name: "b", ...body });
  const created = async (body: object): Promise<unknown> =>
    scene.owner.json("POST", "/budgets", { name: "b", ...body });
  const watch = (): Promise<void> => scene.gateway().app.budgets.watch.run();
  const alerts = async (id: string): Promise<unknown[]> =>
    listAt(await scene.owner.json("GET", `/budgets/${id}/alerts`), "data");
  const ask = async (key?: string): Promise<void> => {
    const body = { model: "acme/large", messages: [{ role: "user", content: "hi" }] };
    const answer =
      key === undefined
        ? await scene.gateway().post("/chat/completions", body)
        : await scene.withKey(key, "POST", "/chat/completions", body);
    expect(answer.status).toBe(200);
  };
  const cleared = async (): Promise<void> => {
    for (const budget of listAt(await scene.owner.json("GET", "/budgets"), "data")) {
      await scene.owner.json("DELETE", `/budgets/${textAt(budget, "id")}`);
    }
    mail.mails.length = 0;
    webhook.hooks.length = 0;
    webhook.answerWith(200);
    clock.advance(40 * dayMs);
  };

  test("a period begins on the day that is named, and never again for all time", async () => {
    const monthly = at(await created({ limit: 1, reset_day: 15 }), "data");
    expect(monthly).toMatchObject({
      period: "monthly",
      reset_day: 15,
      period_start: "2025-02-15T00:00:00.000Z",
      period_end: "2025-03-15T00:00:00.000Z",
    });
    const weekly = at(await created({ limit: 1, period: "weekly", reset_day: 7 }), "data");
    expect(weekly).toMatchObject({ reset_day: 7, period_start: "2025-03-02T00:00:00.000Z" });
    const total = at(await created({ limit: 1, period: "total" }), "data");
    expect(total).toMatchObject({ period: "total", reset_day: null });
    for (const body of [
      { period: "weekly", reset_day: 8 },
      { period: "daily", reset_day: 2 },
    ]) {
      const refused = await create({ limit: 1, ...body });
      expect(at(await refused.json(), "error.param")).toBe("reset_day");
    }
    for (const made of [monthly, weekly, total])
      await scene.owner.json("DELETE", `/budgets/${textAt(made, "id")}`);
  });

  test("report what an agent's run spends, by mail and signed webhook", async () => {
    mail.mails.length = 0;
    webhook.hooks.length = 0;
    const run = await scene.owner.json("POST", "/runs", { name: "nightly", limit: 4 * cost });
    const id = textAt(run, "data.id");
    const made = await created({
      name: "the nightly run",
      scope: "key",
      subject: id,
      period: "total",
      limit: 4 * cost,
      emails: ["owner@example.com"],
      webhook_url: webhook.url,
    });
    await ask();
    await ask(textAt(run, "key"));
    await watch();
    expect(mail.mails).toHaveLength(0);
    await ask(textAt(run, "key"));
    await watch();
    expect(mail.mails.map(({ text }) => text)).toEqual([
      expect.stringContaining('"the nightly run" for the run run_'),
    ]);
    const [hook] = webhook.hooks;
    expect(hook && isSigned(hook, textAt(made, "webhook_secret"))).toBe(true);
    expect(at(JSON.parse(hook?.body ?? "{}"), "data")).toMatchObject({
      subject: id,
      threshold: 50,
      spent: 2 * cost,
    });
  });

  test("send each threshold once per period, by mail and signed webhook, and again in the next period", async () => {
    await cleared();
    const made = await created({
      limit: 4 * cost,
      emails: ["owner@example.com"],
      webhook_url: webhook.url,
      name: "all of it",
    });
    const [id, secret] = [textAt(made, "data.id"), textAt(made, "webhook_secret")];
    const defaults = {
      object: "budget",
      scope: "workspace",
      period: "monthly",
      thresholds: [50, 80, 100],
      spent: 0,
    };
    expect(at(made, "data")).toMatchObject(defaults);
    await ask();
    await watch();
    expect([mail.mails.length, webhook.hooks.length]).toEqual([0, 0]);
    await ask();
    for (let runs = 0; runs < 3; runs += 1) await watch();
    expect([mail.mails.length, webhook.hooks.length]).toEqual([1, 1]);
    const [sent] = mail.mails;
    expect(sent).toMatchObject({ to: "owner@example.com", from: "noreply@example.com" });
    expect(sent?.text).toContain('"all of it" for the workspace has reached 50 % of its limit.');
    expect(sent?.text).toContain(`Spent: ${2 * cost} USD of ${4 * cost} USD`);
    const [hook] = webhook.hooks;
    expect(hook && isSigned(hook, secret)).toBe(true);
    expect(JSON.parse(hook?.body ?? "{}")).toMatchObject({
      type: "budget.threshold_reached",
      data: { budget_id: id, threshold: 50, limit: 4 * cost, spent: 2 * cost },
    });
    expect(hook?.headers.get("x-service-event")).toBe("budget.threshold_reached");
    await ask();
    await ask();
    await watch();
    expect(webhook.hooks.map(({ body }) => at(JSON.parse(body), "data.threshold"))).toEqual([
      50, 100,
    ]);
    const told = (await alerts(id)).map((alert) => [
      at(alert, "threshold"),
      listAt(alert, "deliveries").map((each) => at(each, "status")),
    ]);
    expect(told).toEqual([
      [100, ["delivered", "delivered"]],
      [80, []],
      [50, ["delivered", "delivered"]],
    ]);
    clock.advance(31 * dayMs);
    expect(await scene.owner.json("GET", `/budgets/${id}`)).toMatchObject({ spent: 0 });
    await ask();
    await ask();
    await watch();
    expect(webhook.hooks.map(({ body }) => at(JSON.parse(body), "data.threshold"))).toEqual([
      50, 100, 50,
    ]);
    await scene.owner.json("PATCH", `/budgets/${id}`, { limit: 2 * cost });
    await watch();
    expect(webhook.hooks.map(({ body }) => at(JSON.parse(body), "data.threshold"))).toEqual([
      50, 100, 50, 100,
    ]);
    const rotated = textAt(
      await scene.owner.json("POST", `/budgets/${id}/rotate-secret`),
      "webhook_secret",
    );
    expect(rotated).not.toBe(secret);
    await scene.owner.json("PATCH", `/budgets/${id}`, { limit: cost });
    await watch();
    const newest = webhook.hooks.at(-1);
    expect(newest && [isSigned(newest, rotated), isSigned(newest, secret)]).toEqual([true, false]);
  });

  test("count the cost of a workspace, a key with its child keys, a user, a model or a provider", async () => {
    await cleared();
    const key = await scene.owner.json("POST", "/keys", { name: "own", allowed_endpoints: null });
    const child = await (
      await scene.withKey(textAt(key, "key"), "POST", "/key/children", { name: "child" })
    ).json();
    const userId = textAt(await scene.owner.json("GET", "/session"), "user.id");
    const subjects = [
      { scope: "workspace" },
      { scope: "key", subject: textAt(key, "data.id") },
      { scope: "key", subject: textAt(child, "data.id") },
      { scope: "user", subject: userId },
      { scope: "model", subject: "acme/large" },
      { scope: "provider", subject: "acme" },
      { scope: "provider", subject: "another" },
    ];
    const daily = { limit: 1, period: "daily" };
    const ids = await Promise.all(
      subjects.map(async (subject) => textAt(await created({ ...subject, ...daily }), "data.id")),
    );
    await ask();
    await ask(textAt(key, "key"));
    await ask(textAt(child, "key"));
    const spent = await Promise.all(
      ids.map(async (id) => numberAt(await scene.owner.json("GET", `/budgets/${id}`), "spent")),
    );
    expect(spent).toEqual([3, 2, 1, 2, 3, 3, 0].map((times) => (times * cost * 1e9) / 1e9));
  });

  test("retry a webhook with growing delays, give up after the last one and log every attempt", async () => {
    await cleared();
    const id = textAt(await created({ limit: cost, webhook_url: webhook.url }), "data.id");
    webhook.answerWith(500);
    await ask();
    const waits = [1, 5, 30, 120, 360];
    for (const [index, minutes] of waits.entries()) {
      await watch();
      const [delivery] = listAt((await alerts(id))[0], "deliveries");
      expect(delivery).toMatchObject({
        status: "pending",
        attempts: index + 1,
        last_status: 500,
        last_error: "The webhook answered 500.",
      });
      clock.advance((minutes - 1) * minuteMs);
      await watch();
      expect(webhook.hooks).toHaveLength(index + 1);
      clock.advance(minuteMs);
    }
    await watch();
    const [delivery] = listAt((await alerts(id))[0], "deliveries");
    expect(delivery).toMatchObject({ status: "failed", attempts: 6, next_attempt_at: null });
    clock.advance(dayMs);
    await watch();
    expect(webhook.hooks.length).toBe(6);
    expect(
      new Set(webhook.hooks.map(({ headers }) => headers.get("x-service-delivery"))).size,
    ).toBe(1);
    expect(JSON.stringify(await alerts(id))).not.toContain("a secret of the network");
  });

  test("follow no redirects and deliver once the webhook recovers", async () => {
    await cleared();
    const id = textAt(await created({ limit: cost, webhook_url: webhook.url }), "data.id");
    webhook.answerWith(302, { location: `http://127.0.0.1:${upstream.port}/internal` });
    await ask();
    await watch();
    expect(listAt((await alerts(id))[0], "deliveries")[0]).toMatchObject({
      status: "pending",
      last_status: 302,
    });
    webhook.answerWith(204);
    clock.advance(minuteMs);
    await watch();
    expect(listAt((await alerts(id))[0], "deliveries")[0]).toMatchObject({
      status: "delivered",
      attempts: 2,
      last_status: 204,
    });
  });

  const chat = {
    model: "acme/large",
    messages: [{ role: "user", content: "hi" }],
    max_tokens: 1000,
  };
  const spentOf = async (id: string): Promise<number> =>
    numberAt(await scene.owner.json("GET", `/budgets/${id}`), "spent");
  const refusal = async (answer: Response): Promise<unknown> => {
    expect(answer.status).toBe(402);
    return at(await answer.json(), "error.metadata");
  };

  test("with action block enforce every scope, name the budget in the error and release it when changed", async () => {
    const userId = textAt(await scene.owner.json("GET", "/session"), "user.id");
    const key = await scene.owner.json("POST", "/keys", { name: "own", allowed_endpoints: null });
    const secret = textAt(key, "key");
    const child = textAt(
      await (await scene.withKey(secret, "POST", "/key/children", { name: "child" })).json(),
      "key",
    );
    const send = (bearer: string): Promise<Response> =>
      scene.withKey(bearer, "POST", "/chat/completions", chat);
    for (const subject of [
      { scope: "workspace" },
      { scope: "key", subject: textAt(key, "data.id") },
      { scope: "user", subject: userId },
      { scope: "model", subject: "acme/large" },
      { scope: "provider", subject: "acme" },
    ]) {
      await cleared();
      const id = textAt(
        await created({ ...subject, limit: 2 * cost, action: "block", name: "enough" }),
        "data.id",
      );
      for (const bearer of [secret, subject.scope === "user" ? secret : child])
        expect((await send(bearer)).status).toBe(200);
      expect(await refusal(await send(secret))).toMatchObject({
        reason: "budget_reached",
        budget_id: id,
        budget_name: "enough",
        budget_scope: subject.scope,
        available_usd: 0,
      });
      expect(await spentOf(id)).toBe(2 * cost);
      expect(
        at(await scene.owner.json("PATCH", `/budgets/${id}`, { action: "alert" }), "action"),
      ).toBe("alert");
      expect((await send(secret)).status).toBe(200);
      await scene.owner.json("PATCH", `/budgets/${id}`, { action: "block" });
      expect((await send(secret)).status).toBe(402);
      await scene.owner.json("PATCH", `/budgets/${id}`, { limit: 4 * cost });
      expect((await send(secret)).status).toBe(200);
      expect((await send(secret)).status).toBe(402);
      clock.advance(31 * dayMs);
      expect((await send(secret)).status).toBe(200);
    }
  });

  test("with action block hold under parallel requests and count spending from before their creation", async () => {
    await cleared();
    await ask();
    const id = textAt(await created({ limit: 6 * cost, action: "block" }), "data.id");
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => scene.gateway().post("/chat/completions", chat)),
    );
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].sort()).toEqual([200, 402]);
    expect(await spentOf(id)).toBeLessThanOrEqual(6 * cost);
    expect(await spentOf(id)).toBeGreaterThanOrEqual(3 * cost);
  });

  test.each([
    [{ limit: 1, action: "stop" }, "action"],
    [{ limit: 0 }, "limit"],
    [{ limit: -1 }, "limit"],
    [{}, "limit"],
    [{ limit: 1, scope: "key" }, "subject"],
    [{ limit: 1, subject: "key_x" }, "subject"],
    [{ limit: 1, scope: "key", subject: "key_of_others" }, "subject"],
    [{ limit: 1, scope: "user", subject: "usr_of_others" }, "subject"],
    [{ limit: 1, thresholds: [] }, "thresholds"],
    [{ limit: 1, thresholds: [0] }, "thresholds[0]"],
    [{ limit: 1, emails: ["stranger@example.com"] }, "emails"],
    [{ limit: 1, emails: ["no address"] }, "emails[0]"],
    [{ limit: 1, webhook_url: "http://example.com/" }, "webhook_url"],
    [{ limit: 1, webhook_url: "https://10.0.0.1/" }, "webhook_url"],
    [{ limit: 1, webhook_url: "https://169.254.169.254/" }, "webhook_url"],
    [{ limit: 1, webhook_url: "https://[::1]/" }, "webhook_url"],
    [{ limit: 1, webhook_url: "file:///etc/passwd" }, "webhook_url"],
    [{ limit: 1, period: "hourly" }, "period"],
    [{ limit: 1, more: true }, "more"],
  ])("creating one with %j returns 400", async (body, param) => {
    expect(await errorOf(await create(body))).toMatchObject({ status: 400, param });
  });

  test("are not accessible to other workspaces, and members cannot create them", async () => {
    await cleared();
    const id = textAt(await created({ limit: 1 }), "data.id");
    const { browser } = await scene.person("sara");
    for (const [method, path] of [
      ["GET", `/budgets/${id}`],
      ["DELETE", `/budgets/${id}`],
      ["GET", `/budgets/${id}/alerts`],
    ] as const) {
      expect((await browser.api(method, path)).status).toBe(404);
    }
    const shared = textAt(
      await scene.owner.json("GET", `/organizations/${scene.organizationId}`),
      "workspace_id",
    );
    await browser.json("PATCH", "/session", { workspace_id: shared });
    expect((await browser.api("GET", "/budgets")).status).toBe(200);
    const refused = await errorOf(await browser.api("POST", "/budgets", { name: "b", limit: 1 }));
    expect(refused).toMatchObject({ status: 403, code: "insufficient_scope" });
  });
});

test("creating a budget with emails returns 501 when no mail server is configured", async () => {
  const scene = await startOperatorScene(undefined);
  const refused = await errorOf(
    await scene.owner.api("POST", "/budgets", {
      name: "b",
      limit: 1,
      emails: ["owner@example.com"],
    }),
  );
  expect(refused).toMatchObject({ status: 501, code: "not_configured", param: "emails" });
  await scene.stop();
});
