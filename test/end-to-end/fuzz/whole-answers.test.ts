import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { adaptIn, readIn, routeIn } from "../../support/in-process.ts";
import { allPairs, nameOf } from "../matrix/support/pairs.ts";
import { mutated, mutation } from "./support/mutations.ts";
import { fuzzRuns, fuzzSeed, fuzzTimeoutMs } from "./support/runs.ts";
import { goodAnswers } from "./support/seeds.ts";

describe("any whole upstream response becomes a valid client response or a provider failure", () => {
  test.each(allPairs.map((pair) => [nameOf(pair), pair] as const))(
    "%s",
    async (_, { client, upstream }) => {
      const seeds = goodAnswers(upstream);
      const adapter = adaptIn(client.name, {
        body: { model: "acme/large", ...client.ask("Hi") },
        route: routeIn(upstream),
      });
      const outcomes = { served: 0, failed: 0 };
      await fc.assert(
        fc.asyncProperty(
          fc.nat(seeds.length - 1),
          fc.array(mutation, { maxLength: 5 }),
          async (seed, mutations) => {
            const answer = mutations.reduce(mutated, seeds[seed] as unknown);
            const read = await readIn(adapter, JSON.stringify(answer));
            outcomes[read.ok ? "served" : "failed"] += 1;
            if (!read.ok) {
              expect(read.failure.code).toMatch(/^[a-z_0-9]+$/);
              return;
            }
            const body = client.mean(JSON.parse(read.text) as Record<string, unknown>);
            expect(body.id).toBe("answer_1");
            for (const count of Object.values(read.metered?.usage ?? {}))
              expect(count).toBeGreaterThanOrEqual(0);
          },
        ),
        { seed: fuzzSeed, numRuns: fuzzRuns(2_250) },
      );
      expect(Math.min(outcomes.served, outcomes.failed)).toBeGreaterThan(0);
    },
    fuzzTimeoutMs,
  );
});
