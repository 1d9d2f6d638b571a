import { afterAll, describe, expect, test } from "bun:test";
import { endProcesses } from "../support/process.ts";
import { hasRedis, redisMissing } from "../support/redis.ts";
import { runScenario } from "./run-scenario.ts";
import { scenarios } from "./scenarios.ts";

afterAll(endProcesses);

describe.skipIf(!hasRedis)(`failure modes under load on two gateways${redisMissing}`, () => {
  test.each(scenarios.filter(({ quick }) => quick === true))(
    "$name: nothing lost, double, free or held",
    async (scenario) => {
      const result = await runScenario(scenario);
      console.log(JSON.stringify(result));
      expect(result).toMatchObject({ lost: 0, double: 0, free: 0, stuckHolds: 0 });
      expect(result.served).toBeGreaterThan(40);
    },
    180_000,
  );
});
