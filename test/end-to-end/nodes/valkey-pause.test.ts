import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type FaultScrapes, testAlert } from "../../support/alert-firing.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at } from "../api/at.ts";
import { type AskedGateway, getJson, postChat } from "../process/support/ask.ts";
import { openHolds, untilIdle } from "../process/support/expect-nothing-held.ts";
import { chargeIn } from "../process/support/seen-charge.ts";
import { expectToStand, standingBooks } from "../process/support/standing-books.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
const inFlight = 24;

/** @see `docs/decisions/0094-settling-without-shared-state.md` */
describe.skipIf(!hasRedis).each([1, 2])(
  `Valkey paused under %i gateways${redisMissing}`,
  (nodeCount) => {
    let nodes: HostedNodes;
    let gateways: AskedGateway[];
    let scrapes: FaultScrapes;
    beforeAll(async () => {
      nodes = await hostNodes();
      gateways = nodes.gateways.slice(0, nodeCount);
      if (nodeCount === 1) await nodes.gateways[1].stop();
    }, 240_000);
    afterAll(() => nodes.stop());

    const books = () => standingBooks({ options: {}, query: nodes.query });

    test(`${inFlight} responses in flight are charged once during the pause, and everything continues after it`, async () => {
      const { upstream, redis } = nodes;
      const scrape = async (): Promise<string> =>
        (await fetch(`${gateways[0]?.url}/metrics`)).text();
      const before = await scrape();
      const gate = upstream.gate();
      // Streams have shown their first words when it stops, whole answers are not begun.
      upstream.script((request) => {
        const [head, first, ...rest] = chatAnswer(request, { usage });
        if (head === undefined || first === undefined)
          throw new Error("the fixture has too few steps");
        return [head, first, gate, ...rest];
      });
      const answers = Array.from({ length: inFlight }, (_, index) =>
        postChat(gateways[index % nodeCount]!, { stream: index % 3 !== 0 }).then(
          (response) => response.text(),
          String,
        ),
      );
      await upstream.waitForRequest(inFlight);
      redis.pause();
      gate.open();
      const texts = await Promise.all(answers);
      const seen = texts.flatMap(chargeIn);
      expect(texts.filter((text) => !text.includes('"cost"'))).toEqual([]);
      expect(seen).toHaveLength(inFlight);
      const during = await books();
      expectToStand(seen, during);
      expect(during.charges.size).toBe(inFlight);
      // A charge is made before the connection is given up, which a refused request has waited for.
      for (const gateway of gateways) {
        const refused = await postChat(gateway);
        expect([refused.status, refused.headers.get("retry-after") !== null]).toEqual([503, true]);
        await refused.text();
      }
      for (const { url } of gateways) {
        const readiness = await fetch(`${url}/readyz`);
        expect([readiness.status, await readiness.json()]).toEqual([
          503,
          { status: "unready", unready: ["shared_state"] },
        ]);
        expect(await (await fetch(`${url}/metrics`)).text()).toContain(
          "\nswitchyard_shared_state_up 0\n",
        );
        const health = await (await fetch(`${url}/api/v1/health`)).json();
        expect([at(health, "status"), at(health, "components.api.status")]).toEqual([
          "down",
          "down",
        ]);
      }

      scrapes = { before, during: await scrape() };
      redis.resume();
      upstream.script((request) => chatAnswer(request, { usage }));
      for (const gateway of gateways) {
        await until(
          async () => {
            const response = await postChat(gateway);
            seen.push(...chargeIn(await response.text()));
            return response.status === 200;
          },
          { patienceMs: 50_000, what: "requests are served again" },
        );
      }
      await Promise.all(gateways.map(untilIdle));
      const after = await books();
      expectToStand(seen, after);
      expect(after.charges.size).toBe(inFlight + nodeCount);
      expect(await nodes.query("select id from transfers where kind = 'uncollected'")).toEqual([]);
      for (const gateway of gateways) {
        expect(await openHolds(gateway)).toBe(0);
        expect(await getJson(gateway, "/credits")).toMatchObject({
          balance: Number(after.balanceNano / 1_000n) / 1e6,
        });
      }
    }, 240_000);
    testAlert("SwitchyardSharedStateAway", () => scrapes);
  },
);
