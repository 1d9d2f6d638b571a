import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { talkingStream } from "../../support/talking-stream.ts";
import { at } from "../api/at.ts";
import { postChat } from "../process/support/ask.ts";
import { createKey } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

/**
 * The credits that ten streams share: enough for their first 4,096 tokens, and too few for the
 * 8,000 that each of them has.
 */
const sharedUsd = 0.08;
const sharedNano = 80_000_000n;
const streams = 10;
const tokens = 8_000;

/** The last reason that a chat stream tells. */
const finishOf = (text: string): string | undefined =>
  [...text.matchAll(/"finish_reason":"(\w+)"/g)].at(-1)?.[1];

const payers = [
  [
    "one key's limit",
    "10",
    async ({ gateways }: HostedNodes) => (await createKey(gateways, { limit: sharedUsd })).key,
  ],
  ["one balance", String(sharedUsd), () => Promise.resolve(undefined)],
] as const;

describe.skipIf(!hasRedis).each(payers)(
  `ten streams at two gateways compete for %s${redisMissing}`,
  (_, credits, secretOf) => {
    let nodes: HostedNodes;
    beforeAll(async () => {
      nodes = await hostNodes({ credits });
    }, 240_000);
    afterAll(() => nodes.stop());

    test("none is cut, the charges stay within it, and nothing is uncollected", async () => {
      const secret = await secretOf(nodes);
      const { upstream, gateways } = nodes;
      const gate = upstream.gate();
      upstream.script((request) => [gate, ...talkingStream(tokens)(request)]);
      const asking = Array.from({ length: streams }, async (_each, index) => {
        const asked = {
          model: "acme/large",
          messages: [{ role: "user", content: "Talk" }],
          max_tokens: 100_000,
          stream: true,
        };
        const response = await postChat(
          gateways[index % 2 === 0 ? 0 : 1],
          asked,
          secret === undefined ? {} : { secret },
        );
        return { status: response.status, text: await response.text() };
      });
      // All are admitted before any is answered.
      await upstream.waitForRequest(streams);
      gate.open();
      const replies = await Promise.all(asking);
      expect(replies.map(({ status }) => status)).toEqual(
        Array.from({ length: streams }, () => 200),
      );
      const finishes = replies.map(({ text }) => finishOf(text));
      expect(finishes.filter((finish) => finish !== "stop" && finish !== "length")).toEqual([]);
      // There are too few credits for all of them to end.
      expect(finishes).toContain("length");
      for (const { text } of replies) expect(text).toEndWith("data: [DONE]\n\n");

      const settled = (): Promise<Record<string, unknown>[]> =>
        nodes.query("select status, cost_nano, detail from generations");
      await until(async () => (await settled()).length === streams, {
        patienceMs: 50_000,
        what: "every stream is in the books",
      });
      const rows = await settled();
      const charged = rows.reduce((sum, { cost_nano: cost }) => sum + BigInt(String(cost)), 0n);
      expect(charged).toBeLessThanOrEqual(sharedNano);
      // What was there to be spent was spent: each began with more than a tenth of a half.
      expect(charged).toBeGreaterThan(sharedNano / 2n);
      const detailOf = ({ detail }: Record<string, unknown>): unknown =>
        typeof detail === "string" ? JSON.parse(detail) : detail;
      expect(rows.map((row) => at(detailOf(row), "uncollectedNanoUsd"))).toEqual(
        rows.map(() => undefined),
      );
    }, 240_000);
  },
);
