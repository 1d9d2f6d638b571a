import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endProcesses, killStarting, startProcess } from "../../support/process.ts";
import { getJson } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { seededRandom, testSeed } from "./support/seeded-random.ts";
import { standingBooks } from "./support/standing-books.ts";
import { stores, type OpenedStore } from "./support/stores.ts";
import { isNightly } from "../../support/nightly.ts";

afterAll(endProcesses);

/** Each in a part of a start of its own; nightly more of them. */
const kills = isNightly ? 12 : 4;
/** Of two starts each, the second of which meets what the first has left, on one database. */
const rounds = kills / 2;

describe.each([...stores])("first starts that are killed on $name", ({ name, openEmpty }) => {
  const seed = testSeed();
  const random = seededRandom(seed);

  const optionsOf = (store: OpenedStore) => ({
    ...store.options,
    environment: { ...bootstrapVariables, ...store.options.environment },
  });

  let startMs = 0;
  beforeAll(async () => {
    console.log(`${name}: SWITCHYARD_TEST_SEED=${seed}`);
    ({ startMs } = await startProcess(optionsOf(await openEmpty())));
  });

  test.each(Array.from({ length: rounds }, (_, round) => round))(
    "leave nothing that the next start cannot complete, and no duplicates, round %d",
    async (round) => {
      const store = await openEmpty();
      const options = optionsOf(store);
      for (const part of [round, round + rounds])
        await killStarting(options, startMs * (0.4 + (0.6 * (part + random())) / kills));
      const gateway = await startProcess(options);
      expect(await getJson(gateway, "/credits")).toMatchObject({
        balance: 10,
        topup_balance: 10,
        used: 0,
      });
      expect((await standingBooks(store)).balanceNano).toBe(10_000_000_000n);
      const counts = await store.query(`
        select (select count(*) from workspaces) as workspaces, (select count(*) from llm_keys) as llm_keys,
          (select count(*) from management_keys) as management_keys, (select count(*) from transfers) as transfers`);
      expect(
        Object.entries(counts[0] ?? {}).map(([table, count]) => [table, Number(count)]),
      ).toEqual([
        ["workspaces", 1],
        ["llm_keys", 1],
        ["management_keys", 1],
        ["transfers", 1],
      ]);
      await gateway.kill9();
    },
  );
});
