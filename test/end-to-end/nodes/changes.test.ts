import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { at, textAt } from "../api/at.ts";
import { type AskedGateway, postChat } from "../process/support/ask.ts";
import { createKey, manage } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

/** A change is in force everywhere within a second, where the machine has nothing else to do. */
const patienceMs = 60_000;

describe.skipIf(!hasRedis)(`changes at one of two gateways${redisMissing}`, () => {
  let nodes: HostedNodes;
  let here: AskedGateway;
  let there: AskedGateway;
  beforeAll(async () => {
    nodes = await hostNodes();
    nodes.upstream.script(healthyChat);
    [here, there] = nodes.gateways;
  }, 240_000);
  afterAll(() => nodes.stop());

  const statusAt = async (
    gateway: AskedGateway,
    key: string,
    changes: Record<string, unknown> = {},
  ): Promise<number> => {
    const response = await postChat(gateway, changes, { secret: key });
    await response.text();
    return response.status;
  };

  /** Resolves once the other gateway answers with a status. */
  const untilThere = (
    key: string,
    status: number,
    changes: Record<string, unknown> = {},
  ): Promise<void> =>
    until(async () => (await statusAt(there, key, changes)) === status, {
      patienceMs,
      what: `${status} at the other gateway`,
    });

  test("a key's creation, change, rotation and revocation reach the other gateway", async () => {
    const { key, hash } = await createKey([here], {});
    await untilThere(key, 200);
    await manage(here, `/keys/${hash}`, { method: "PATCH", body: { disabled: true } });
    await untilThere(key, 401);
    await manage(here, `/keys/${hash}`, { method: "PATCH", body: { disabled: false } });
    await untilThere(key, 200);
    const rotated = await manage(here, `/keys/${hash}/rotate`, { method: "POST" });
    await untilThere(key, 401);
    const second = textAt(rotated, "key");
    await untilThere(second, 200);
    await manage(here, `/keys/${textAt(rotated, "data.hash")}`, { method: "DELETE" });
    await untilThere(second, 401);
  }, 240_000);

  test("a preset's creation and deletion reach the other gateway", async () => {
    const preset = { slug: "of-two", name: "Of two", config: { model: "acme/large" } };
    const unknown = await statusAt(there, testLlmKey, { model: "@preset/of-two" });
    await manage(here, "/presets", { body: preset });
    await untilThere(testLlmKey, 200, { model: "@preset/of-two" });
    await manage(there, "/presets/of-two", { method: "DELETE" });
    const isGone = async (): Promise<boolean> =>
      (await statusAt(here, testLlmKey, { model: "@preset/of-two" })) === unknown;
    await until(isGone, { patienceMs, what: "it is gone" });
  }, 240_000);

  test("an IP allowlist change reaches the other gateway, by the database too", async () => {
    const { key } = await createKey(nodes.gateways, {});
    await manage(here, "/security/ip-allowlist", {
      body: { cidr: "203.0.113.0/24", description: null, confirm: true },
    });
    await untilThere(key, 403);
    await nodes.query("delete from ip_allowlist");
    await nodes.query("update changed_workspaces set at_ms = at_ms + 1");
    for (const gateway of nodes.gateways) {
      await until(async () => (await statusAt(gateway, key)) === 200, {
        patienceMs: 50_000,
        what: "the database is asked, too",
      });
    }
  }, 240_000);

  test("parallel changes at both apply at both", async () => {
    const keys = await Promise.all(
      Array.from({ length: 10 }, (_, index) => createKey([index % 2 === 0 ? here : there], {})),
    );
    await Promise.all(keys.map(({ key }) => untilThere(key, 200)));
    await Promise.all(
      keys.map(({ hash }, index) =>
        manage(index % 2 === 0 ? here : there, `/keys/${hash}`, { method: "DELETE" }),
      ),
    );
    await Promise.all(
      keys.flatMap(({ key }) =>
        nodes.gateways.map((gateway) =>
          until(async () => (await statusAt(gateway, key)) === 401, {
            patienceMs,
            what: "401 at both",
          }),
        ),
      ),
    );
  }, 240_000);

  test("without Valkey, changes arrive by the database, paid requests get 503, and no restart is needed", async () => {
    const { key, hash } = await createKey([here, there], {});
    await nodes.redis.kill();
    await until(async () => (await statusAt(there, key)) === 503, {
      patienceMs,
      what: "503 without the server",
    });
    const refused = await postChat(there, {}, { secret: key });
    expect([refused.headers.get("retry-after"), at(await refused.json(), "error.code")]).toEqual([
      "2",
      "service_unavailable",
    ]);
    await manage(here, `/keys/${hash}`, { method: "DELETE" });
    await untilThere(key, 401);
    await nodes.redis.restart();
    for (const gateway of nodes.gateways) {
      await until(async () => (await statusAt(gateway, testLlmKey)) === 200, {
        patienceMs,
        what: "200 with the server",
      });
    }
    const { key: another } = await createKey([here], {});
    await untilThere(another, 200);
  }, 240_000);
});
