import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endProcesses } from "../../support/process.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { moveSlot } from "../../support/redis-cluster.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at } from "../api/at.ts";
import { getJson, postChat } from "../process/support/ask.ts";
import { openHolds, untilIdle } from "../process/support/expect-nothing-held.ts";
import { chargeIn, type SeenCharge } from "../process/support/seen-charge.ts";
import { expectToStand, standingBooks } from "../process/support/standing-books.ts";
import {
  startClusterNodes,
  type ClusterNodes,
  type PlacedWorkspace,
} from "./support/cluster-nodes.ts";
import { createKey } from "./support/manage.ts";
import { parallel } from "./support/parallel.ts";
import { until } from "./support/until.ts";

const usage = { prompt_tokens: 25, completion_tokens: 100, total_tokens: 125 };
/**
 * The cost of `request` in nano-USD, held and charged alike: 100 characters of input and 100 output
 * tokens.
 */
const costNano = 25 * 500 + 100 * 1_500;
const patienceMs = 120_000;
/** Pause of a client between its requests, which leaves the cores to what is awaited. */
const restMs = 25;

/** Returns a chat request whose JSON has 100 characters. */
function request(): Record<string, unknown> {
  const body = (content: string) => ({
    model: "acme/large",
    messages: [{ role: "user", content }],
    max_tokens: 100,
  });
  return body("x".repeat(100 - JSON.stringify(body("")).length));
}

/**
 * Expects the database to have exactly the charges that clients saw, and every gateway to show the
 * resulting balances.
 */
async function expectExactBooks(
  { gateways, workspaces, query }: ClusterNodes,
  seen: readonly SeenCharge[],
): Promise<void> {
  await Promise.all(gateways.map(untilIdle));
  const books = await standingBooks({ options: {}, query });
  expectToStand(seen, books);
  expect(books.charges.size).toBe(seen.length);
  expect(await query("select id from transfers where kind = 'uncollected'")).toEqual([]);
  for (const gateway of gateways) {
    expect(await openHolds(gateway)).toBe(0);
    const shown = await Promise.all(
      workspaces.map(({ secret }) => getJson(gateway, "/credits", secret)),
    );
    const total = shown.reduce(
      (sum: number, each) => sum + (each as { balance: number }).balance,
      0,
    );
    // Each balance is rounded to a millionth of a dollar.
    const differenceMicroUsd = Math.abs(total * 1e6 - Number(books.balanceNano) / 1e3);
    expect(differenceMicroUsd).toBeLessThan(workspaces.length);
  }
}

/** @see `docs/decisions/0140-a-cluster-in-parts.md` */
describe.skipIf(!hasRedis)(`three gateways on a cluster of three primaries${redisMissing}`, () => {
  let nodes: ClusterNodes;
  const seen: SeenCharge[] = [];
  beforeAll(async () => {
    nodes = await startClusterNodes({ gateways: 3, creditsUsd: (10 * costNano) / 1e9 });
  }, 600_000);
  afterAll(async () => {
    await endProcesses();
    await nodes.stop();
  });

  test("90 parallel requests for a balance of ten per workspace: ten of each workspace are served", async () => {
    const { upstream, gateways, workspaces } = nodes;
    const [count, expected] = [90, 10];
    const gate = upstream.gate();
    upstream.script((each) => [gate, ...chatAnswer(each, { usage })]);
    const restIsRefused = Promise.withResolvers<void>();
    let refused = 0;
    const sent = Array.from({ length: count * workspaces.length }, async (_, index) => {
      const { secret, id } = workspaces[index % workspaces.length]!;
      const gateway = gateways[Math.floor(index / workspaces.length) % gateways.length]!;
      const response = await postChat(gateway, request(), { secret });
      if (response.status !== 200 && (refused += 1) >= (count - expected) * workspaces.length)
        restIsRefused.resolve();
      seen.push(...(response.status === 200 ? chargeIn(await response.text()) : []));
      return [id, response.status];
    });
    await Promise.race([restIsRefused.promise, Promise.all(sent)]);
    gate.open();
    const answers = await Promise.all(sent);
    for (const { id } of workspaces) {
      const statuses = answers.filter(([of]) => of === id).map(([, status]) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(expected);
    }
    await expectExactBooks(nodes, seen);
  }, 600_000);

  test("a key's window of 60 admits 60 of twice as many requests", async () => {
    const { key } = await createKey(nodes.gateways, { rate_limit: 60 });
    const statuses = await parallel({ count: 120, atOnce: 30 }, async (index) => {
      const response = await postChat(nodes.gateways[index % 3]!, request(), { secret: key });
      await response.text();
      return response.status;
    });
    // The key has no credits left, so requests that its window admits are refused for that.
    expect(statuses.filter((status) => status === 429)).toHaveLength(60);
    expect(statuses).not.toContain(200);
  }, 600_000);
});

describe.skipIf(!hasRedis)(`two gateways on a changing cluster${redisMissing}`, () => {
  let nodes: ClusterNodes;
  const seen: SeenCharge[] = [];
  beforeAll(async () => {
    nodes = await startClusterNodes({ replicas: 1 });
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
  }, 600_000);
  afterAll(async () => {
    await endProcesses();
    await nodes.stop();
  });

  /** Sends a request, records its charge and returns the status. */
  const ask = async ({ secret }: PlacedWorkspace, turn: number): Promise<number> => {
    const gateway = nodes.gateways[turn % nodes.gateways.length]!;
    const response = await postChat(gateway, request(), { secret });
    const text = await response.text();
    if (response.status === 200) seen.push(...chargeIn(text));
    return response.status;
  };

  const untilServed = async (workspace: PlacedWorkspace): Promise<void> => {
    for (const turn of nodes.gateways.keys())
      await until(async () => (await ask(workspace, turn)) === 200, {
        patienceMs,
        what: `${workspace.id} is served`,
      });
  };

  /**
   * Sends requests for all workspaces to all gateways until the work is done; returns the statuses.
   */
  const askMeanwhile = async (work: () => Promise<void>): Promise<Set<number>> => {
    const statuses = new Set<number>();
    let isDone = false;
    const asking = Array.from({ length: 6 }, async (_, asker) => {
      for (let turn = asker; !isDone; turn += 1) {
        statuses.add(await ask(nodes.workspaces[asker % 3]!, turn));
        await Bun.sleep(restMs);
      }
    });
    try {
      await work();
    } finally {
      isDone = true;
      await Promise.all(asking);
    }
    return statuses;
  };

  test("a slot that moves to another primary and back under load keeps the books exact", async () => {
    const { cluster, workspaces } = nodes;
    const [, second, third] = cluster.primaries as unknown as [
      never,
      ...ClusterNodes["cluster"]["primaries"],
    ];
    const [, moved] = workspaces;
    for (const workspace of workspaces) await untilServed(workspace);
    const statuses = await askMeanwhile(async () => {
      await moveSlot(moved.slot, { from: second!, to: third! });
      await untilServed(moved);
      await moveSlot(moved.slot, { from: third!, to: second! });
      await untilServed(moved);
    });
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    await expectExactBooks(nodes, seen);
  }, 600_000);

  test("a primary killed under load stops only its own workspaces, until its replica takes over", async () => {
    const { cluster, workspaces, upstream, gateways } = nodes;
    const [lost, ...others] = workspaces;
    const [replica] = cluster.replicas;
    const inFlight = 12;
    const gate = upstream.gate();
    upstream.script((each) => [gate, ...chatAnswer(each, { usage })]);
    const asked = upstream.requests.length;
    const answers = Array.from({ length: inFlight }, (_, turn) => ask(workspaces[turn % 3]!, turn));
    await upstream.waitForRequest(asked + inFlight);
    await cluster.kill(cluster.primaries[0]!);
    gate.open();
    expect(await Promise.all(answers)).toEqual(Array.from({ length: inFlight }, () => 200));

    upstream.script((each) => chatAnswer(each, { usage }));
    const statuses = await askMeanwhile(async () => {
      for (const workspace of others) await untilServed(workspace);
      for (const [turn, gateway] of gateways.entries()) {
        expect(await ask(lost, turn)).toBe(503);
        expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
        const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
        const share = Number(/^switchyard_shared_state_up (\S+)$/m.exec(metrics)?.[1]);
        expect(share).toBeGreaterThan(0);
        expect(share).toBeLessThan(1);
        const health = await (await fetch(`${gateway.url}/api/v1/health`)).json();
        expect(at(health, "components.api.status")).toBe("degraded");
      }
      await replica!.client.call("CLUSTER", "FAILOVER", "TAKEOVER");
      await untilServed(lost);
    });
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    await expectExactBooks(nodes, seen);
  }, 600_000);
});
