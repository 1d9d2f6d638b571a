import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { promptFields } from "../hub/hub-scene.ts";
import { callTool } from "../mcp/mcp-client.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";

describe.skipIf(!hasRedis)(`MCP on two gateways${redisMissing}`, () => {
  let nodes: HostedNodes;
  beforeAll(async () => {
    nodes = await hostNodes();
  }, 240_000);
  afterAll(() => nodes.stop());

  const url = (index: number): string => `${nodes.gateways[index % 2 === 0 ? 0 : 1].url}/mcp`;
  async function call(
    index: number,
    name: string,
    given: Record<string, unknown> = {},
  ): Promise<unknown> {
    const outcome = await callTool(url(index), { name, given, secret: testManagementKey });
    if ("result" in outcome) return outcome.result;
    throw new Error(`${name} was refused: ${JSON.stringify(outcome)}`);
  }

  test("either gateway answers a client's next call", async () => {
    const prompt = await call(0, "publish_prompt", promptFields({ title: "Of both" }));
    const id = textAt(prompt, "id");
    expect(at(await call(1, "star_prompt", { prompt_id: id }), "stars")).toBe(1);
    expect(at(await call(0, "star_prompt", { prompt_id: id }), "stars")).toBe(1);
    await call(0, "create_hub", { name: "Both", slug: "both" });
    expect(at(await call(1, "get_hub", { slug: "both" }), "name")).toBe("Both");
  });

  test("a call with one idempotency key acts once at both gateways", async () => {
    const given = { name: "once", idempotency_key: "one-key-at-two-gateways" };
    const first = await call(0, "create_key", given);
    expect(await call(1, "create_key", given)).toEqual(first);
    const named = listAt(await call(1, "list_keys"), "data").filter(
      (key) => at(key, "name") === "once",
    );
    expect(named).toHaveLength(1);
  });
});
