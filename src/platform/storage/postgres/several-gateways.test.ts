import { expect, test } from "bun:test";
import { freshDatabase } from "../../../../test/support/postgres.ts";
import {
  entryUnit,
  sampleOptions,
  type SampleSchema,
} from "../../../../test/support/sample-commits.ts";
import { openStorage } from "../open-storage.ts";
import type { Storage } from "../storage.ts";
import { StorageInUseError } from "../storage-error.ts";

const open = (url: string, severalGateways: boolean): Promise<Storage<SampleSchema>> =>
  openStorage<SampleSchema>({ ...sampleOptions, url, severalGateways, lockTimeoutMs: 0 });

test("several gateways commit to one database, and one that wants it for itself is kept out, and keeps them out", async () => {
  const url = await freshDatabase();
  const [one, other] = await Promise.all([open(url, true), open(url, true)]);
  await expect(open(url, false)).rejects.toThrow(StorageInUseError);
  await Promise.all(
    [one, other].flatMap(({ commits }, node) =>
      Array.from({ length: 50 }, (_, index) => commits.commit(entryUnit(`${node}-${index}`, 1))),
    ),
  );
  expect(await one.database.selectFrom("entries").select("id").execute()).toHaveLength(100);
  await Promise.all([one.close(), other.close()]);
  const alone = await open(url, false);
  await expect(open(url, true)).rejects.toThrow(StorageInUseError);
  await alone.close();
}, 60_000);

test("what is done alone is done by one after the other", async () => {
  const url = await freshDatabase();
  const storages = await Promise.all([open(url, true), open(url, true)]);
  let inside = 0;
  const most = await Promise.all(
    storages.flatMap((storage) =>
      [0, 1].map(() =>
        storage.alone(async () => {
          inside += 1;
          const seen = inside;
          await storage.isHealthy();
          inside -= 1;
          return seen;
        }),
      ),
    ),
  );
  expect(most).toEqual([1, 1, 1, 1]);
  await Promise.all(storages.map((storage) => storage.close()));
}, 60_000);
