import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json, stall } from "../../support/upstream/steps.ts";
import type { AskedGateway } from "../process/support/ask.ts";
import { untilIdle } from "../process/support/expect-nothing-held.ts";
import { openaiVectors } from "../surfaces/support/surface-scene.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

const patienceMs = 50_000;

/** Of each answer that is charged: one dollar for a million tokens, and a text is one token. */
const vectorsYaml = (baseUrl: string): string => `
  - id: vectors
    name: Vectors
    base_url: ${baseUrl}
    dialect: { embeddings: openai-embeddings }
    api_key: upstream-secret
    models:
      - { id: acme/embed, surface: embeddings, context_length: 8192, pricing: { prompt: "1.00", completion: "2.00" } }
`;

/** @see `docs/decisions/0131-one-turn-for-identical-embeddings.md` */
describe.skipIf(!hasRedis)(`identical embeddings at two gateways${redisMissing}`, () => {
  let vectors: FaultUpstream;
  let nodes: HostedNodes;
  beforeAll(async () => {
    vectors = await startFaultUpstream();
    nodes = await hostNodes({ yaml: vectorsYaml(vectors.baseUrl) });
  }, 240_000);
  afterAll(async () => {
    await nodes.stop();
    vectors.stop();
  });

  /** Asks for the vector of a text, of which each test has its own. */
  async function embed({ url }: AskedGateway, input: string) {
    const response = await fetch(`${url}/api/v1/embeddings`, {
      method: "POST",
      headers: { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "acme/embed", input }),
    });
    const text = await response.text();
    return [response.status, response.headers.get("x-service-cache-status"), text] as const;
  }

  /** Waits until a gateway works on so many requests beside the one that asks for it. */
  const untilInFlight = ({ url }: AskedGateway, count: number): Promise<void> =>
    until(
      async () => {
        const text = await (await fetch(`${url}/metrics`)).text();
        return new RegExp(`^switchyard_requests_in_flight ${count + 1}$`, "m").test(text);
      },
      { patienceMs, what: `${count} requests in flight` },
    );

  test("20 parallel requests make one provider request and one charge", async () => {
    const gate = vectors.gate();
    vectors.script((request) => [gate, ...openaiVectors(request)]);
    const answers = Array.from({ length: 20 }, (_, index) =>
      embed(nodes.gateways[index % 2]!, "parallel"),
    );
    await vectors.waitForRequest(1);
    for (const gateway of nodes.gateways) await untilInFlight(gateway, 10);
    gate.open();
    const all = await Promise.all(answers);
    expect(all.map(([status, cache]) => `${status} ${cache}`).sort()).toEqual([
      ...Array.from({ length: 19 }, () => "200 HIT"),
      "200 MISS",
    ]);
    expect(vectors.requests).toHaveLength(1);
    const vectorOf = (text: string): unknown => (JSON.parse(text) as { data: unknown }).data;
    expect(new Set(all.map(([, , text]) => JSON.stringify(vectorOf(text)))).size).toBe(1);
    for (const gateway of nodes.gateways) await untilIdle(gateway);
    const charges = await nodes.query(
      "select amount_nano::text as nano from transfers where kind = 'charge'",
    );
    expect(charges).toEqual([{ nano: "1000" }]);
    await until(
      async () => (await nodes.query("select id from generations")).length === all.length,
      { patienceMs, what: "each request has its record" },
    );
  }, 240_000);

  test("that fail at one gateway are sent by the next, and the failure is not cached", async () => {
    const [one, other] = nodes.gateways;
    const asked = vectors.requests.length;
    const gate = vectors.gate();
    vectors.enqueue([gate, ...json({ error: { message: "no" } }, { status: 400 })]);
    vectors.script(openaiVectors);
    const failing = embed(one, "failing");
    await vectors.waitForRequest(asked + 1);
    const answers = Array.from({ length: 5 }, () => embed(other, "failing"));
    await untilInFlight(other, 5);
    gate.open();
    expect((await failing)[0]).toBeGreaterThanOrEqual(400);
    expect((await Promise.all(answers)).map(([status]) => status)).toEqual([
      200, 200, 200, 200, 200,
    ]);
    expect(vectors.requests).toHaveLength(asked + 2);
  }, 240_000);

  test("at a killed gateway are answered by one new request of the other gateway", async () => {
    const [other] = nodes.gateways;
    const killed = await nodes.start();
    const asked = vectors.requests.length;
    vectors.enqueue([stall()]);
    vectors.script(openaiVectors);
    const lost = embed(killed, "killed").catch(() => "lost");
    await vectors.waitForRequest(asked + 1);
    const answers = Array.from({ length: 10 }, () => embed(other, "killed"));
    await untilInFlight(other, 10);
    expect(vectors.requests).toHaveLength(asked + 1);
    await killed.kill9();
    const all = await Promise.all(answers);
    expect(all.map(([status, cache]) => `${status} ${cache}`).sort()).toEqual([
      ...Array.from({ length: 9 }, () => "200 HIT"),
      "200 MISS",
    ]);
    expect([await lost, vectors.requests.length]).toEqual(["lost", asked + 2]);
  }, 240_000);
});
