import { afterAll, describe, expect, test } from "bun:test";
import { endProcesses } from "../support/process.ts";
import { hasRedis, redisMissing } from "../support/redis.ts";
import { runScenario } from "./run-scenario.ts";
import { scenarios } from "./scenarios.ts";

afterAll(endProcesses);

/** Twelve clients then send some 400 requests a second, instead of as many as two cores can take. */
const restMs = 25;

describe.skipIf(!hasRedis)(`failure modes under load on three gateways${redisMissing}`, () => {
  test.each(scenarios.filter(({ quick, on }) => quick === true && on.includes("three nodes")))(
    "$name: nothing lost, charged twice, served free or left held",
    async (scenario) => {
      const result = await runScenario(scenario, "three nodes", { restMs });
      console.log(JSON.stringify(result));
      expect(result).toMatchObject({ lost: 0, double: 0, free: 0, stuckHolds: 0 });
      expect(result.served).toBeGreaterThan(300);
    },
    600_000,
  );
});
