import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { expectNothingHeld } from "./support/expect-nothing-held.ts";
import { loadUntilGone } from "./support/load-until-gone.ts";
import type { SeenCharge } from "./support/seen-charge.ts";
import { seededRandom, testSeed } from "./support/seeded-random.ts";
import { expectToStand, standingBooks } from "./support/standing-books.ts";
import { stores, type OpenedStore } from "./support/stores.ts";
import { isNightly } from "../../support/nightly.ts";

/** A lost charge needs the right moment, which `npm test -- --engines=all` looks for longer. */
const rounds = isNightly ? 50 : 4;
/**
 * A round takes six seconds on a machine that is busy with other things: few of them, so that no
 * test comes near its timeout.
 */
const roundsPerTest = 2;
const clientsMax = 50;

/** @see https://github.com/BerriAI/litellm/issues/30522 holds that were never released. */
describe.each([...stores])("kill -9 under load on $name", ({ name, open }) => {
  const seed = testSeed();
  const random = seededRandom(seed);
  const pick = (below: number): number => Math.floor(random() * below);
  const seen: SeenCharge[] = [];
  let upstream: FaultUpstream;
  let store: OpenedStore;
  let unseenCount = 0;

  beforeAll(async () => {
    console.log(`${name}: SWITCHYARD_TEST_SEED=${seed}`);
    upstream = await startFaultUpstream();
    upstream.script((request) => {
      const [input, output] = [
        5 + (upstream.requests.length % 97),
        3 + (upstream.requests.length % 53),
      ];
      return chatAnswer(request, {
        usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
      });
    });
    store = await open();
  });
  afterAll(async () => {
    await endProcesses();
    upstream.stop();
    console.log(
      `${name}: ${seen.length} charges were seen in ${rounds} rounds; ${unseenCount} more stood`,
    );
  });

  const start = (durability: "power" | "process"): Promise<GatewayProcess> =>
    startProcess({
      ...store.options,
      environment: { ...bootstrapVariables, ...store.options.environment },
      yaml: acmeYaml(upstream.baseUrl, `storage: { durability: ${durability} }\n`),
    });

  /** Loads a gateway and kills it at a moment that the seed chose. */
  async function loadAndKill(gateway: GatewayProcess): Promise<void> {
    const load = loadUntilGone(gateway, { clients: 20 + pick(clientsMax - 20) });
    await Promise.race([load.hasSeen(1 + pick(250)), load.gone]);
    for (let turns = pick(20); turns > 0; turns -= 1)
      await new Promise((resolve) => setImmediate(resolve));
    await gateway.kill9();
    await load.gone;
    seen.push(...load.seen);
  }

  /**
   * After a kill stands what was seen, and besides that only what was under way, one answer a
   * client; gives the balance.
   */
  async function expectWhatWasSeen(): Promise<bigint> {
    const books = await standingBooks(store);
    expectToStand(seen, books);
    const unseen = books.charges.size - seen.length;
    expect(unseen - unseenCount).toBeLessThanOrEqual(clientsMax);
    unseenCount = unseen;
    return books.balanceNano;
  }

  test.each(
    Array.from({ length: rounds / roundsPerTest }, (_, index) => index * roundsPerTest + 1),
  )(
    `every charge that a client saw is stored once and nothing is held, rounds %i and the next`,
    async () => {
      for (let round = 0; round < roundsPerTest; round += 1) {
        const gateway = await start(round % 2 === 0 ? "power" : "process");
        try {
          seen.push(await expectNothingHeld(gateway, await expectWhatWasSeen()));
          await loadAndKill(gateway);
        } finally {
          await gateway.kill9();
        }
      }
    },
  );

  test("the same holds after the last round", async () => {
    await expectNothingHeld(await start("power"), await expectWhatWasSeen());
  });
});
