import { expect, test } from "bun:test";
import { sql } from "kysely";
import {
  hasPgBouncer,
  pgBouncerMissing,
  startPgBouncer,
} from "../../../../test/support/pgbouncer.ts";
import { freshDatabase } from "../../../../test/support/postgres.ts";
import {
  entryUnit,
  sampleOptions,
  type SampleSchema,
} from "../../../../test/support/sample-commits.ts";
import { openStorage } from "../open-storage.ts";
import { StorageInUseError } from "../storage-error.ts";

const open = (url: string, severalGateways = true, lockTimeoutMs = 0) =>
  openStorage<SampleSchema>({ ...sampleOptions, url, severalGateways, lockTimeoutMs });

test.skipIf(!hasPgBouncer)(
  `gateways commit through PgBouncer in session mode, with time limits and locks${pgBouncerMissing}`,
  async () => {
    const pooler = await startPgBouncer(await freshDatabase(), "session");
    const storages = await Promise.all([open(pooler.url), open(pooler.url)]);
    await Promise.all(
      storages.flatMap(({ commits }, node) =>
        Array.from({ length: 20 }, (_, index) => commits.commit(entryUnit(`${node}-${index}`, 1))),
      ),
    );
    const [one] = storages;
    expect(await one!.database.selectFrom("entries").select("id").execute()).toHaveLength(40);
    const { rows } = await sql<{ limit: string }>`
      select current_setting('statement_timeout') as limit`.execute(one!.database);
    expect(rows).toEqual([{ limit: "30s" }]);
    await expect(open(pooler.url, false)).rejects.toThrow(StorageInUseError);
    await Promise.all(storages.map((storage) => storage.close()));
    // The pooler frees the locks of a session after its client has left.
    const alone = await open(pooler.url, false, 30_000);
    await alone.close();
    await pooler.stop();
  },
  240_000,
);

test.skipIf(!hasPgBouncer)(
  `PgBouncer in transaction mode is refused with an explanation${pgBouncerMissing}`,
  async () => {
    const pooler = await startPgBouncer(await freshDatabase(), "transaction");
    await expect(open(pooler.url)).rejects.toThrow("set pool_mode to session");
    await expect(open(pooler.url, false)).rejects.toThrow("set pool_mode to session");
    await pooler.stop();
  },
  240_000,
);
