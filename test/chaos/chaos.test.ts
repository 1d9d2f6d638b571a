import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endProcesses } from "../support/process.ts";
import { hasRedis, redisMissing } from "../support/redis.ts";
import { type ChaosParts, startParts } from "./parts.ts";
import { runOn } from "./run-scenario.ts";
import { scenarios } from "./scenarios.ts";

afterAll(endProcesses);

/** Twelve clients then send some 200 requests a second, instead of as many as two cores can take. */
const load = { restMs: 50, servedBefore: 100 };

const quick = scenarios.filter(({ quick, on }) => quick === true && on.includes("three nodes"));

/** The clocks of gateways, which are those of the processes; what has the same runs on the same. */
const clocks = Map.groupBy(quick, ({ minutesAhead = [0, 0, 0] }) => minutesAhead.join(", "));

describe.skipIf(!hasRedis)(`failure modes under load on three gateways${redisMissing}`, () => {
  describe.each([...clocks])("with clocks ahead by %s minutes", (_, together) => {
    let parts: ChaosParts;
    beforeAll(async () => {
      parts = await startParts({ ...together[0], topology: "three nodes" });
    }, 600_000);
    afterAll(async () => {
      await Promise.all(parts.gateways.map((gateway) => gateway.kill9()));
      await parts.stop();
    });

    test.each(together)(
      "$name: nothing lost, charged twice, served free or left held",
      async (scenario) => {
        const result = await runOn(parts, scenario, load);
        console.log(JSON.stringify(result));
        expect(result).toMatchObject({ lost: 0, double: 0, free: 0, stuckHolds: 0 });
        expect(result.served).toBeGreaterThan(load.servedBefore);
      },
      600_000,
    );
  });
});
