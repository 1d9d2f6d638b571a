import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../src/platform/kernel/errors.ts";
import { adaptIn, routeIn } from "../../support/in-process.ts";
import { fieldsOf } from "../matrix/support/json-value.ts";
import { allClients, upstreams } from "../matrix/support/pairs.ts";
import { mutated, mutation } from "./support/mutations.ts";
import { fuzzRuns, fuzzSeed, fuzzTimeoutMs } from "./support/runs.ts";
import { goodRequests } from "./support/seeds.ts";

const routes = upstreams.map((upstream) => [upstream, routeIn(upstream)] as const);

describe("any client request is sent to every upstream or refused with the client's 400", () => {
  test.each(allClients.map(({ name }) => name))(
    "%s",
    (client) => {
      const seeds = goodRequests(client);
      const outcomes = { asked: 0, refused: 0 };
      fc.assert(
        fc.property(
          fc.nat(seeds.length - 1),
          fc.array(mutation, { maxLength: 6 }),
          (seed, mutations) => {
            const body = fieldsOf(mutations.reduce(mutated, seeds[seed] as unknown));
            for (const [upstream, route] of routes) {
              try {
                const { requestText, losses } = adaptIn(client, { body, route });
                expect(typeof JSON.parse(requestText)).toBe("object");
                expect(losses.every(({ reason }) => reason !== "")).toBe(true);
                outcomes.asked += 1;
              } catch (error) {
                if (!(error instanceof GatewayError) || error.status < 400 || error.status >= 500) {
                  throw new Error(
                    `${client} -> ${upstream} broke on ${JSON.stringify(body)}: ${String(error)}`,
                    { cause: error },
                  );
                }
                outcomes.refused += 1;
              }
            }
          },
        ),
        { seed: fuzzSeed, numRuns: fuzzRuns(9_000) },
      );
      // Neither all good nor all bad: the bodies are worth the name.
      expect(
        Math.min(outcomes.asked, outcomes.refused) / (outcomes.asked + outcomes.refused),
      ).toBeGreaterThan(0.1);
    },
    fuzzTimeoutMs,
  );
});
