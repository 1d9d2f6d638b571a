import { expect, test } from "bun:test";
import { CuttingProxy } from "../../../../test/support/cutting-proxy.ts";
import { freshDatabase } from "../../../../test/support/postgres.ts";
import {
  entryUnit,
  sampleOptions,
  type SampleSchema,
} from "../../../../test/support/sample-commits.ts";
import { openStorage } from "../open-storage.ts";

const open = (url: string) =>
  openStorage<SampleSchema>({ ...sampleOptions, url, severalGateways: true, lockTimeoutMs: 0 });

test("a gateway suspended during a fold does not block the sums for others", async () => {
  const url = new URL(await freshDatabase());
  const proxy = new CuttingProxy({ host: url.hostname, port: Number(url.port) });
  const port = String(await proxy.listen());
  const other = await open(url.href);
  const suspended = await open(Object.assign(new URL(url), { port }).href);
  const asked = Promise.withResolvers<void>();
  proxy.cutWhen = (request) => {
    if (!request.includes("lock table commit_formats")) return false;
    proxy.mode = "freeze";
    asked.resolve();
    return false;
  };
  proxy.mode = "lose-request";
  await suspended.commits.commit(entryUnit("a", 5));
  await asked.promise;
  // Its lock is on the way to the server before the other asks for anything.
  expect(await other.database.selectFrom("totals").selectAll().execute()).toEqual([
    { account: "acme", amount: 5, entries: 1 },
  ]);
  proxy.mode = "pass";
  proxy.cutAll();
  await Promise.all([suspended.close(), other.close()]);
  await proxy.close();
}, 240_000);
