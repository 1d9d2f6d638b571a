/**
 * Commits entries forever, eight at a time, and prints the id and amount of each once it is
 * durable. Every third time it reads the totals, so that totals are folded at any moment.
 * Arguments: the database file, and a prefix that makes the ids of this run unique.
 */
import { writeSync } from "node:fs";
import { openStorage } from "../../src/platform/storage/open-storage.ts";
import { entryUnit, sampleOptions, type SampleSchema } from "./sample-commits.ts";

const [path, prefix] = process.argv.slice(2);
const storage = await openStorage<SampleSchema>({
  ...sampleOptions,
  url: `sqlite:${path}`,
  lockTimeoutMs: 0,
});
writeSync(1, "open\n");

let count = 0;

async function commitForever(): Promise<never> {
  for (;;) {
    const id = `${prefix}-${++count}`;
    const amount = 20 + (count % 1_000);
    await storage.commits.commit(entryUnit(id, amount, `account-${count % 3}`));
    writeSync(1, `${id} ${amount}\n`);
    if (count % 3 === 0) await storage.database.selectFrom("totals").selectAll().execute();
  }
}

await Promise.all(Array.from({ length: 8 }, commitForever));
