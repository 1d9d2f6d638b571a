import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at, listAt, textAt } from "../api/at.ts";
import type { AskedGateway } from "../process/support/ask.ts";
import { createKey, manage } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { parallel } from "./support/parallel.ts";
import { until } from "./support/until.ts";
import { isNightly } from "../../support/nightly.ts";

const usage = { prompt_tokens: 25, completion_tokens: 100, total_tokens: 125 };
/** A request of 100 characters that asks for 100 tokens is held and charged alike. */
const costNano = 25 * 500 + 100 * 1500;
const bodyOf = (content: string) => ({
  model: "acme/large",
  messages: [{ role: "user", content }],
  stream: false,
  max_tokens: 100,
});
const request = bodyOf("x".repeat(100 - JSON.stringify(bodyOf("")).length));

/** The customers and the requests of each: a thousand and two hundred with `--engines=all`. */
const [customers, requestsOfEach] = isNightly ? [1_000, 200] : [12, 15];
/** The price at a markup of a third, which does not come out even. */
const priceNano = Math.ceil((costNano * 13_333) / 10_000);
const affordable = 5;
const limitNano = affordable * priceNano + 1;

describe.skipIf(!hasRedis)(`customers on several gateways${redisMissing}`, () => {
  let nodes: HostedNodes;
  beforeAll(async () => {
    nodes = await hostNodes({
      credits: "5000",
      yaml: `customers: { default_limit: "${limitNano / 1e9}", per: month, markup: 0.3333 }\n`,
    });
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
  }, 240_000);
  afterAll(() => nodes.stop());
  const nano = (usd: unknown): number => Math.round(Number(usd) * 1e9);
  const listed = async (gateway: AskedGateway): Promise<unknown[]> => {
    const found: unknown[] = [];
    for (let cursor = ""; ; ) {
      const page = await manage(gateway, `/customers?limit=200${cursor}`, { method: "GET" });
      found.push(...listAt(page, "data"));
      if (at(page, "next_cursor") === null) return found;
      cursor = `&cursor=${textAt(page, "next_cursor")}`;
    }
  };

  test("none passes its plan while a gateway is killed, and the margin is exact", async () => {
    const { key } = await createKey(nodes.gateways, {});
    const third = await nodes.start();
    const gateways = [...nodes.gateways, third];
    const count = customers * requestsOfEach;
    let asked = 0;
    const ask = async (gateway: AskedGateway, customer: number): Promise<number> => {
      const response = await fetch(`${gateway.url}/api/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "x-service-customer": `customer ${customer}`,
        },
        body: JSON.stringify(request),
      });
      await response.text();
      return response.status;
    };
    await parallel({ count, atOnce: 60 }, async (index) => {
      asked += 1;
      if (asked === Math.floor(count / 3)) void third.kill9();
      const gateway = gateways[index % 3] ?? nodes.gateways[0];
      return ask(gateway, index % customers).catch(() => 0);
    });
    // What the killed gateway held is free again, so that each customer can use its plan up.
    await until(
      async () => {
        await parallel({ count: customers, atOnce: 30 }, (index) =>
          ask(nodes.gateways[index % 2] ?? nodes.gateways[0], index),
        );
        const found = await listed(nodes.gateways[0]);
        return (
          found.length === customers &&
          found.every((each) => nano(at(each, "used")) === affordable * priceNano)
        );
      },
      { patienceMs: 600_000, what: "every customer has used its plan and no more" },
    );
    const found = await listed(nodes.gateways[1]);
    expect(found).toHaveLength(customers);
    for (const each of found)
      expect(at(each, "usage")).toMatchObject({
        requests: affordable,
        cost: (affordable * costNano) / 1e9,
        price: (affordable * priceNano) / 1e9,
        margin: (affordable * (priceNano - costNano)) / 1e9,
      });
    const [charged] = await nodes.query(
      "select sum(cost_nano) as cost, count(*) as requests from generations where cost_nano > 0",
    );
    expect(Number(charged?.["cost"])).toBe(customers * affordable * costNano);
  }, 1_800_000);

  test("a team's limit, models and keys hold at every gateway", async () => {
    const [one, other] = nodes.gateways;
    const team = await manage(one, "/teams", {
      body: {
        name: "Shared",
        limit: (affordable * costNano + 1) / 1e9,
        time_zone: "Asia/Kathmandu",
      },
    });
    const id = textAt(team, "id");
    const keys = [
      await createKey(nodes.gateways, { team_id: id }),
      await createKey(nodes.gateways, { team_id: id }),
    ];
    const ask = async (index: number): Promise<number> => {
      const response = await fetch(`${(index % 2 === 0 ? one : other).url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${keys[index % 3 === 0 ? 0 : 1]?.key}` },
        body: JSON.stringify(request),
      });
      await response.text();
      return response.status;
    };
    let served = 0;
    const askOnce = async (index: number): Promise<void> => {
      if ((await ask(index)) === 200) served += 1;
    };
    await parallel({ count: 60, atOnce: 30 }, askOnce);
    await parallel({ count: 2 * affordable, atOnce: 1 }, askOnce);
    expect(served).toBe(affordable);
    const spent = async (gateway: AskedGateway): Promise<number> =>
      nano(at(await manage(gateway, `/teams/${id}`, { method: "GET" }), "spent"));
    expect([await spent(one), await spent(other)]).toEqual([
      affordable * costNano,
      affordable * costNano,
    ]);
    const change = (body: object) => manage(one, `/teams/${id}`, { method: "PATCH", body });
    await change({ limit: 1 });
    await until(async () => (await ask(1)) === 200, { patienceMs: 50_000, what: "a higher limit" });
    await change({ allowed_models: ["acme/none"] });
    await until(async () => (await ask(1)) === 403, { patienceMs: 50_000, what: "fewer models" });
    await manage(one, `/teams/${id}?keys=keep`, { method: "DELETE" });
    await until(async () => (await ask(1)) === 200, { patienceMs: 50_000, what: "no team" });
  }, 240_000);
});
