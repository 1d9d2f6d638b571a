import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type AskedGateway, getJson, postChat } from "../process/support/ask.ts";
import { at, textAt } from "../api/at.ts";
import { createKey, give, manage } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { parallel } from "./support/parallel.ts";
import { until } from "./support/until.ts";

/** So small that a busy machine works off all requests long before the first leaves the window. */
const window = 120;

/**
 * Each request costs this, held and charged alike: its body is 100 characters and it asks for 100
 * tokens.
 */
const usage = { prompt_tokens: 25, completion_tokens: 100, total_tokens: 125 };
const costNano = 25 * 500 + 100 * 1_500;

/** A chat request whose JSON has 100 characters. */
function request(): Record<string, unknown> {
  const body = (content: string) => ({
    model: "acme/large",
    messages: [{ role: "user", content }],
    max_tokens: 100,
  });
  return body("x".repeat(100 - JSON.stringify(body("")).length));
}

/**
 * Sends 200 requests before any is answered, half to each; the provider answers once all but
 * `expected` are refused.
 */
async function serveAllAtOnce(
  { upstream, gateways }: HostedNodes,
  { secret, expected }: { secret?: string; expected: number },
): Promise<number> {
  const gate = upstream.gate();
  upstream.script((each) => [gate, ...chatAnswer(each, { usage })]);
  const restIsRefused = Promise.withResolvers<void>();
  let refused = 0;
  const sent = Array.from({ length: 200 }, async (_, index) => {
    const response = await postChat(
      gateways[index % 2 === 0 ? 0 : 1],
      request(),
      secret === undefined ? {} : { secret },
    );
    if (response.status !== 200 && (refused += 1) >= 200 - expected) restIsRefused.resolve();
    await response.text();
    return response.status;
  });
  await Promise.race([restIsRefused.promise, Promise.all(sent)]);
  gate.open();
  return (await Promise.all(sent)).filter((status) => status === 200).length;
}

/** @see https://github.com/BerriAI/litellm/issues/40291 a window for each process */
describe.skipIf(!hasRedis)(`two gateways on one Postgres and one Valkey${redisMissing}`, () => {
  let nodes: HostedNodes;
  let gateways: HostedNodes["gateways"];
  beforeAll(async () => {
    nodes = await hostNodes();
    ({ gateways } = nodes);
  }, 240_000);
  afterEach(() => nodes.upstream.script((each) => chatAnswer(each, { usage })));
  afterAll(() => nodes.stop());

  const either = (index: number): AskedGateway => gateways[index % 2 === 0 ? 0 : 1];

  test("both create one first workspace, with its credits once", async () => {
    expect(await nodes.query("select count(*) as count from workspaces")).toMatchObject([
      { count: "1" },
    ]);
    for (const gateway of gateways)
      expect(await getJson(gateway, "/credits")).toMatchObject({ balance: 10 });
  });

  test(`a key's window of ${window} admits ${window} of twice as many requests over 64 connections`, async () => {
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
    const { key } = await createKey(gateways, { rate_limit: window });
    const statuses = await parallel({ count: 2 * window, atOnce: 64 }, async (index) => {
      const response = await postChat(either(index), request(), { secret: key });
      await response.text();
      return response.status;
    });
    expect(statuses.filter((status) => status === 200)).toHaveLength(window);
    expect(statuses.filter((status) => status === 429)).toHaveLength(window);
  }, 240_000);

  test("wrong keys of one address are counted across both, and the valid key still works", async () => {
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
    const statuses = await parallel({ count: 400, atOnce: 64 }, async (index) => {
      const response = await postChat(either(index), request(), {
        secret: `sk-svc-v1-wrong${index}`,
      });
      await response.text();
      return response.status;
    });
    expect(statuses.filter((status) => status === 401)).toHaveLength(300);
    expect(statuses.filter((status) => status === 429)).toHaveLength(100);
    for (const gateway of gateways) expect((await postChat(gateway, request())).status).toBe(200);
  }, 240_000);

  test("200 parallel requests at both against a key's limit for ten: ten are served", async () => {
    const { key, hash } = await createKey(gateways, { limit: (10 * costNano) / 1e9 });
    expect(await serveAllAtOnce(nodes, { secret: key, expected: 10 })).toBe(10);
    for (const gateway of gateways)
      expect(await keyOf(gateway, hash)).toMatchObject({ data: { limit_remaining: 0 } });
  }, 240_000);

  test("200 parallel requests at both against a blocking budget for ten: ten are served, after a flush too", async () => {
    const { key, hash } = await createKey(gateways, {});
    const limit = (10 * costNano) / 1e9;
    const subject = textAt(await keyOf(gateways[0], hash), "data.id");
    const made = await manage(gateways[0], "/budgets", {
      body: { name: "for ten", scope: "key", subject, limit, action: "block" },
    });
    // Where a later key of the workspace is taken, the budget is in force.
    await createKey(gateways, {});
    expect(await serveAllAtOnce(nodes, { secret: key, expected: 10 })).toBe(10);
    for (const forgotten of [false, true]) {
      if (forgotten) {
        await nodes.redis.kill();
        await nodes.redis.restart();
      }
      for (const gateway of gateways) {
        expect(
          await getJson(gateway, `/budgets/${textAt(made, "data.id")}`, testManagementKey),
        ).toMatchObject({ spent: limit });
        const refused = async (): Promise<Response> =>
          postChat(gateway, request(), { secret: key });
        await until(async () => (await refused()).status !== 503, {
          patienceMs: 50_000,
          what: "the server of shared state is back",
        });
        const answer = await refused();
        expect([answer.status, at(await answer.json(), "error.metadata.reason")]).toEqual([
          402,
          "budget_reached",
        ]);
      }
    }
  }, 240_000);

  test("credits granted at one can be spent at the other with the next request", async () => {
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
    await give(gateways[0], 1);
    expect((await postChat(gateways[1], request())).status).toBe(200);
  });

  const keyOf = (gateway: AskedGateway, hash: string): Promise<unknown> =>
    getJson(gateway, `/keys/${hash}`, testManagementKey);
});

describe.skipIf(!hasRedis)(`two gateways on one balance${redisMissing}`, () => {
  let nodes: HostedNodes;
  beforeAll(async () => {
    nodes = await hostNodes({ credits: ((10 * costNano) / 1e9).toFixed(9) });
  }, 240_000);
  afterAll(() => nodes.stop());

  test("200 parallel requests at both for a balance of ten: ten are served, and nothing is left or owed", async () => {
    expect(await serveAllAtOnce(nodes, { expected: 10 })).toBe(10);
    for (const gateway of nodes.gateways)
      expect(await getJson(gateway, "/credits")).toMatchObject({ balance: 0 });
    expect(
      await nodes.query(
        "select id from ledger_accounts where balance_nano < 0 and id not like 'operator:%'",
      ),
    ).toEqual([]);
    expect(await nodes.query("select id from transfers where kind = 'uncollected'")).toEqual([]);
    expect((await postChat(nodes.gateways[1], request())).status).toBe(402);
  }, 240_000);
});
