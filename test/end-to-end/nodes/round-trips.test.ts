import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { reportScript } from "../../../src/billing/ledger/shared/ledger-scripts.ts";
import { SharedState } from "../../../src/platform/shared-state/shared-state.ts";
import type { Storage } from "../../../src/platform/storage/storage.ts";
import type { LedgerTables } from "../../../src/billing/ledger/ledger-store.ts";
import { CuttingProxy } from "../../support/cutting-proxy.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { LedgerProcess, openLedgerDatabase } from "../../support/ledger-process.ts";
import { freshRedis, hasRedis, redisMissing } from "../../support/redis.ts";
import { silentLogger } from "../../support/silent-logger.ts";

/** Commands that run a script begin so (EVALSHA and EVAL); nothing else is sent but `INFO`. */
const scriptCommand = /evalsha?\r\n\$\d+\r\n([^\r]*)/gi;

const shaOf = (lua: string): string => new Bun.CryptoHasher("sha1").update(lua).digest("hex");

/** @see `docs/decisions/0125-a-charge-is-committed-first.md` */
describe.skipIf(!hasRedis)(`round trips to Valkey of a paid request${redisMissing}`, () => {
  let storage: Storage<LedgerTables>;
  let proxy: CuttingProxy;
  let far: SharedState;
  let near: SharedState;
  beforeAll(async () => {
    storage = await openLedgerDatabase();
    const url = new URL(await freshRedis());
    proxy = new CuttingProxy({ host: url.hostname, port: Number(url.port) });
    const throughProxy = new URL(url);
    throughProxy.port = String(await proxy.listen());
    far = await SharedState.open({ url: throughProxy.href, logger: silentLogger });
    near = await SharedState.open({ url: url.href, logger: silentLogger });
  });
  afterAll(async () => {
    far.close();
    near.close();
    await proxy.close();
    await storage.close();
  });

  test("ten settlements wait for none, send nothing but reports, and the charges arrive once", async () => {
    const clock = new FakeClock();
    const parts = { storage, workspaceId: "ws_trips", clock };
    const one = new LedgerProcess({ ...parts, shared: far });
    const other = new LedgerProcess({ ...parts, shared: near });
    const { workspaceId } = parts;
    await one.ledger.credit({
      id: "txn_trips",
      workspaceId,
      bucket: "topup",
      amountNano: 1_000n,
      kind: "topup",
      reference: null,
    });
    const ids = Array.from({ length: 10 }, (_, index) => `gen_trips_${index}`);
    for (const holdId of ids)
      await one.ledger.reserve({
        holdId,
        workspaceId,
        keyId: "k",
        keyLimit: null,
        ceilingNano: 50n,
      });
    let sent = "";
    proxy.onRequest = (request) => (sent += request.toString("latin1"));
    proxy.mode = "hold-answers";
    // No answer of the server reaches this process before all of them are there.
    const posted = await Promise.all(
      ids.map((holdId) =>
        one.ledger.post({
          holdId,
          amountNano: 40n,
          alongside: () => ({ inserts: [], adds: [] }),
        }),
      ),
    );
    expect(posted).toMatchObject(ids.map(() => ({ ok: true, chargedNano: 40n })));
    expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 600n });
    proxy.onRequest = () => undefined;
    proxy.letAnswersGo();
    await one.untilTold();
    const names = [...sent.matchAll(scriptCommand)].map(([, script]) => script);
    expect(names.filter((name) => name !== shaOf(reportScript.lua))).toEqual([]);
    expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 600n, heldNano: 0n });
  });
});
