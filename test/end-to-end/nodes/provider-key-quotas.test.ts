import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at, textAt } from "../api/at.ts";
import { postChat } from "../process/support/ask.ts";
import { manage } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

/** 1,000,000 tokens of output cost 1.50 USD at list price. */
const usage = { prompt_tokens: 0, completion_tokens: 1_000_000, total_tokens: 1_000_000 };
const patienceMs = 50_000;

describe.skipIf(!hasRedis)(
  `an own provider key with a quota at two gateways${redisMissing}`,
  () => {
    let nodes: HostedNodes;
    beforeAll(async () => {
      nodes = await hostNodes();
      nodes.upstream.script((each) => chatAnswer(each, { usage }));
    }, 240_000);
    afterAll(() => nodes.stop());

    const source = async (index: number): Promise<string | null> => {
      const response = await postChat(nodes.gateways[index === 0 ? 0 : 1], { max_tokens: 10 });
      await response.text();
      return response.headers.get("x-service-credential-source");
    };
    const usedAt = async (index: number): Promise<unknown> =>
      at(
        await manage(nodes.gateways[index === 0 ? 0 : 1], "/auth/byok", { method: "GET" }),
        "data.0.keys.0.quota.used",
      );

    test("serves up to its quota across both, and each reports the usage of both", async () => {
      const [here] = nodes.gateways;
      const id = textAt(
        await manage(here, "/auth/byok", {
          body: { provider_id: "acme", api_key: "sk-an-own-key-0001" },
        }),
        "id",
      );
      await manage(here, `/auth/byok/keys/${id}`, {
        method: "PATCH",
        body: { quota: { limit: 4.5, reset: "daily" } },
      });
      await until(async () => (await usedAt(1)) === 0, {
        patienceMs,
        what: "the key is known at the other gateway",
      });
      const served: (string | null)[] = [];
      for (let index = 0; index < 5; index += 1) {
        served.push(await source(index % 2));
        const used = Math.min(3, index + 1) * 1.5;
        for (const gateway of [0, 1])
          await until(async () => (await usedAt(gateway)) === used, {
            patienceMs,
            what: `${used} was used`,
          });
      }
      expect(served).toEqual(["own_byok", "own_byok", "own_byok", "platform", "platform"]);
    }, 240_000);
  },
);
