import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "../api/at.ts";
import { type AskedGateway, getJson, postChat } from "../process/support/ask.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

const patienceMs = 50_000;

describe.skipIf(!hasRedis)(`an outage that one of two gateways detects${redisMissing}`, () => {
  let nodes: HostedNodes;
  let backup: FaultUpstream;
  beforeAll(async () => {
    backup = await startFaultUpstream();
    nodes = await hostNodes({
      yaml: `
  - id: backup
    name: Backup
    base_url: ${backup.baseUrl}
    dialect: openai-chat
    api_key: upstream-secret
    models:
      - id: acme/large
        upstream_model: large-v2
        context_length: 131072
        pricing: { prompt: "5.00", completion: "15.00" }
`,
    });
    nodes.upstream.script(json({ error: { message: "down" } }, { status: 503 }));
  }, 240_000);
  afterAll(async () => {
    await nodes.stop();
    backup.stop();
  });

  const healthOf = async (gateway: AskedGateway, provider: string): Promise<unknown> => {
    const preview = await getJson(gateway, "/models/acme/large/routing-preview");
    const routes = at(preview, "data") as { provider: string; health: unknown }[];
    return routes.find((route) => route.provider === provider)?.health;
  };
  const hasOutage = async (gateway: AskedGateway): Promise<boolean> =>
    at(await healthOf(gateway, "acme"), "status") === "down";
  const serve = async (gateway: AskedGateway): Promise<void> => {
    const response = await postChat(gateway, { provider: { order: ["acme", "backup"] } });
    expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
  };

  test("is known at the other gateway without a request of its own", async () => {
    const [here, there] = nodes.gateways;
    const isKnownThere = async (): Promise<boolean> => {
      await serve(here);
      return hasOutage(there);
    };
    await until(isKnownThere, { patienceMs, what: "the other gateway knows" });
    expect(await hasOutage(here)).toBe(true);
    const asked = nodes.upstream.requests.length;
    expect(await healthOf(there, "acme")).toEqual({
      status: "down",
      requests: 0,
      error_rate: null,
    });
    expect(await healthOf(there, "backup")).toMatchObject({ status: "no_signal" });
    const response = await postChat(there);
    expect(response.status).toBe(200);
    await response.text();
    expect(nodes.upstream.requests).toHaveLength(asked);
  }, 240_000);

  test("ends at the other gateway once the provider answers it", async () => {
    const [, there] = nodes.gateways;
    nodes.upstream.script(healthyChat);
    const response = await postChat(there, { provider: { only: ["acme"] } });
    expect(response.status).toBe(200);
    await response.text();
    expect(await healthOf(there, "acme")).toMatchObject({ status: "healthy", requests: 1 });
  });
});
