import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";

describe.skipIf(!hasRedis)(`an idempotency key at two gateways${redisMissing}`, () => {
  let nodes: HostedNodes;
  beforeAll(async () => {
    nodes = await hostNodes();
  }, 240_000);
  afterAll(() => nodes.stop());

  const create = (index: number): Promise<Response> =>
    fetch(`${nodes.gateways[index % 2 === 0 ? 0 : 1].url}/api/v1/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}`, "idempotency-key": "of-two" },
      body: '{"name":"of two"}',
    });

  test("identifies one request: one key is created, and both replay its response", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => create(index)));
    const statuses = new Set(answers.map(({ status }) => status));
    statuses.delete(409);
    expect(statuses).toEqual(new Set([200]));
    const [here, there] = [await create(0), await create(1)];
    expect([
      here.headers.get("idempotent-replayed"),
      there.headers.get("idempotent-replayed"),
    ]).toEqual(["true", "true"]);
    expect(await there.text()).toBe(await here.text());
    const rows = await nodes.query("select count(*) as keys from llm_keys where name = 'of two'");
    expect(Number(rows[0]?.["keys"])).toBe(1);
  }, 240_000);
});
