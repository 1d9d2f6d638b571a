import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { RunHistory, runHistory, type RunStage } from "../../support/run-history.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { type AskedGateway, postChat } from "../process/support/ask.ts";
import { createKey, manage } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { parallel } from "./support/parallel.ts";
import { until } from "./support/until.ts";
import { isNightly } from "../../support/nightly.ts";

const usage = { prompt_tokens: 25, completion_tokens: 100, total_tokens: 125 };
/** A request of 100 characters that asks for 100 tokens is held and charged alike. */
const costUsd = (25 * 0.5 + 100 * 1.5) / 1e6;
const bodyOf = (content: string) => ({
  model: "acme/large",
  messages: [{ role: "user", content }],
  stream: false,
  max_tokens: 100,
});
const request = bodyOf("x".repeat(100 - JSON.stringify(bodyOf("")).length));

describe.skipIf(!hasRedis)(`runs on several gateways${redisMissing}`, () => {
  let nodes: HostedNodes;
  beforeAll(async () => {
    nodes = await hostNodes();
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
  }, 240_000);
  afterAll(() => nodes.stop());

  const ask = (
    gateway: AskedGateway,
    secret: string,
    { method = "POST", path, body }: { method?: string; path: string; body?: unknown },
  ): Promise<Response> =>
    fetch(`${gateway.url}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const open = (gateway: AskedGateway, secret: string, body: object): Promise<Response> =>
    ask(gateway, secret, { path: "/runs", body: { name: "agent", ...body } });
  const gatewayOf = (index: number): AskedGateway => nodes.gateways[index % 2] ?? nodes.gateways[0];
  const nano = (usd: unknown): number => Math.round(Number(usd) * 1e9);

  test("runs that open at once never pass their key, and what they leave goes back", async () => {
    const { key } = await createKey(nodes.gateways, { limit: 1 });
    const opened = await parallel({ count: 20, atOnce: 20 }, async (index) => {
      const answer = await open(gatewayOf(index), key, { limit: 0.3 });
      return { status: answer.status, body: (await answer.json()) as unknown };
    });
    const made = opened.filter(({ status }) => status === 200);
    expect(made.length).toBe(3);
    const [first, second] = made;
    // The gateway that did not open the run knows its key and sees it end.
    for (const gateway of nodes.gateways)
      expect(
        (await postChat(gateway, request, { secret: textAt(first?.body, "key") })).status,
      ).toBe(200);
    for (const run of [first, second]) {
      const path = `/runs/${textAt(run?.body, "data.id")}`;
      const ended = await ask(gatewayOf(1), key, {
        method: "PATCH",
        path,
        body: { status: "ended" },
      });
      expect(ended.status).toBe(200);
    }
    const rest = 1 - 0.3 - 2 * costUsd;
    await until(async () => (await open(gatewayOf(0), key, { limit: rest })).status === 200, {
      patienceMs: 60_000,
      what: "the rest of the ended runs is back",
    });
    expect((await open(gatewayOf(1), key, { limit: 0.001 })).status).toBe(402);
    const late = await postChat(gatewayOf(0), request, { secret: textAt(first?.body, "key") });
    expect([late.status, at(await late.json(), "error.code")]).toEqual([402, "run_exhausted"]);
  }, 240_000);

  test("200 agents in parallel spend what their run has and no more, with a gateway killed", async () => {
    const { key } = await createKey(nodes.gateways, { limit: 1 });
    const affordable = 40;
    const limit = affordable * costUsd;
    const answer = await open(gatewayOf(0), key, { limit, max_requests: 150 });
    const run: unknown = await answer.json();
    const inner: unknown = await (
      await open(gatewayOf(1), textAt(run, "key"), { name: "inner", limit: 10 * costUsd })
    ).json();
    const third = await nodes.start();
    const gateways = [...nodes.gateways, third];
    let asked = 0;
    const statuses = await parallel({ count: 200, atOnce: 50 }, async (index) => {
      const secret = textAt(index % 3 === 0 ? inner : run, "key");
      asked += 1;
      if (asked === 60) void third.kill9();
      const gateway = gateways[index % 3] ?? nodes.gateways[0];
      return postChat(gateway, request, { secret }).then(
        async (response) => {
          await response.text();
          return response.status;
        },
        () => 0,
      );
    });
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(affordable);
    // What the killed gateway held is free again.
    await until(
      async () => {
        const more = await postChat(gatewayOf(0), request, { secret: textAt(run, "key") });
        await more.text();
        const sub = await postChat(gatewayOf(1), request, { secret: textAt(inner, "key") });
        await sub.text();
        await Bun.sleep(100);
        const shown: unknown = await (
          await ask(gatewayOf(0), key, { method: "GET", path: `/runs/${textAt(run, "data.id")}` })
        ).json();
        return nano(at(shown, "data.spent")) === nano(limit);
      },
      { patienceMs: 60_000, what: "the run is spent" },
    );
    const shown: unknown = await (
      await ask(gatewayOf(1), key, { method: "GET", path: `/runs/${textAt(run, "data.id")}` })
    ).json();
    expect(at(shown, "data")).toMatchObject({ remaining: 0, status: "exhausted" });
    expect(nano(at(listAt(at(shown, "data"), "runs")[0], "spent"))).toBe(nano(10 * costUsd));
    const runId = textAt(run, "data.id");
    const [row] = await nodes.query(
      `select sum(cost_nano) as cost from generations where key_id in
        (select id from runs where id = '${runId}' or owner_id = '${runId}')`,
    );
    expect(Number(row?.["cost"])).toBe(nano(limit));
  }, 240_000);

  test("no run of a random history passes its limit, and what it leaves goes back", async () => {
    let asked = 0;
    const stage: RunStage = {
      unitUsd: 0.00001,
      chat: request,
      async ask(secret, method, path, body) {
        const answer = await ask(gatewayOf((asked += 1)), secret, {
          method,
          path,
          ...(body !== undefined && { body }),
        });
        return { status: answer.status, body: (await answer.json()) as unknown };
      },
      makeKey: async (limit) => (await createKey(nodes.gateways, { limit })).key,
    };
    await fc.assert(
      fc.asyncProperty(runHistory, async (steps) => {
        const history = await RunHistory.begin(stage);
        for (const step of steps) await history.step(step);
        await history.end();
      }),
      { numRuns: isNightly ? 30 : 3, endOnFailure: true },
    );
  }, 600_000);

  test("each customer has its limit by itself at both gateways", async () => {
    await manage(nodes.gateways[0], "/budgets", {
      body: { name: "plan", scope: "customer", subject: "*", action: "block", limit: 5 * costUsd },
    });
    const askAs = (index: number, user: string): Promise<number> =>
      postChat(gatewayOf(index), { ...bodyOf("x"), messages: request.messages, user }).then(
        async (response) => {
          await response.text();
          return response.status;
        },
      );
    await until(async () => (await askAs(1, "probe")) === 402, {
      patienceMs: 60_000,
      what: "both gateways know the budget",
    });
    const customers = ["anna", "ben", "carla"];
    const statuses = await parallel({ count: 90, atOnce: 30 }, async (index) => {
      const user = customers[index % 3] ?? "";
      return { user, status: await askAs(Math.floor(index / 3), user) };
    });
    for (const user of customers) {
      const served = statuses.filter((each) => each.user === user && each.status === 200).length;
      expect([user, served]).toEqual([user, expect.any(Number)]);
      expect(served).toBeLessThanOrEqual(5);
      expect(served).toBeGreaterThan(2);
    }
  }, 240_000);
});
