import { expect, test } from "bun:test";
import { sql } from "kysely";
import { openStorage } from "../../src/platform/storage/open-storage.ts";
import { entryUnit, sampleOptions, type SampleSchema } from "./sample-commits.ts";

/** Tests that raw SQL reads sums with every commit before it, on one storage engine. */
export function rawSumsSuite(name: string, freshUrl: () => Promise<string>): void {
  test.each([
    ["select", sql`select amount from ${sql.table("totals")}`],
    ["with", sql`with named as (select * from ${sql.table("totals")}) select amount from named`],
  ])(`raw SQL on ${name} that begins with %s reads sums with every commit`, async (_, query) => {
    const storage = await openStorage<SampleSchema>({ url: await freshUrl(), ...sampleOptions });
    try {
      await storage.commits.commit(entryUnit("a", 5));
      const { rows } = await query.execute(storage.database);
      expect(rows).toEqual([{ amount: 5 }]);
    } finally {
      await storage.close();
    }
  });
}
