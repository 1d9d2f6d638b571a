import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { acme, startGateway, type TestGateway } from "../../../test/support/gateway.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { PriceHistory } from "./price-history.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

const engines: readonly [string, () => Promise<{ storageUrl?: string }>][] = [
  ["SQLite", () => Promise.resolve({})],
  ["Postgres", async () => ({ storageUrl: await migratedDatabase() })],
];

/** The provider at a price for its output. */
const selling = (completion: string) =>
  acme("http://127.0.0.1:9/v1", {
    models: [
      {
        id: "acme/large",
        upstream_model: "large-v2",
        context_length: 1_000,
        pricing: { prompt: "0.50", completion },
      },
    ],
  });

describe.each(engines)("price history on %s", (_, open) => {
  const clock = new FakeClock();
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ ...(await open()), providers: [selling("1.50")] });
  });
  afterAll(() => gateway.stop());

  /** A history as a gateway has one that has just started. */
  const started = (): PriceHistory =>
    new PriceHistory({
      database: withTables(gateway.app.storage.database),
      catalog: gateway.app.catalog,
      clock,
    });
  const told = async (history: PriceHistory) =>
    (await history.of(["acme/large"])).map(({ provider, atMs, prices }) => [
      provider,
      atMs,
      prices["output_per_1m"],
    ]);

  test("lists each change with its time, and adds nothing for an unchanged catalog", async () => {
    const history = started();
    const firstMs = clock.nowMs();
    expect(await told(history)).toEqual([["acme", firstMs, 1.5]]);
    clock.advance(60_000);
    gateway.app.refreshCatalog({ providers: [selling("1.50")] });
    expect(await told(history)).toEqual([["acme", firstMs, 1.5]]);
    gateway.app.refreshCatalog({ providers: [selling("2.00")] });
    const secondMs = clock.nowMs();
    const both = [
      ["acme", firstMs, 1.5],
      ["acme", secondMs, 2],
    ];
    expect(await told(history)).toEqual(both);
    // A gateway that starts again knows what it was before, and finds what changed meanwhile.
    clock.advance(60_000);
    expect(await told(started())).toEqual(both);
    gateway.app.refreshCatalog({ providers: [selling("1.50")] });
    expect(await told(started())).toEqual([...both, ["acme", clock.nowMs(), 1.5]]);
  });

  test("lists a change once if two gateways saw it", async () => {
    gateway.app.refreshCatalog({ providers: [selling("3.00")] });
    clock.advance(60_000);
    const changedMs = clock.nowMs();
    await started().look();
    clock.advance(1);
    const { database } = gateway.app.storage;
    const seen = await database
      .selectFrom("price_changes")
      .selectAll()
      .where("model", "=", "acme/large")
      .where("at_ms", "=", changedMs)
      .execute();
    expect(seen).toHaveLength(1);
    await database
      .insertInto("price_changes")
      .values(seen.map((row) => ({ ...row, at_ms: clock.nowMs() })))
      .execute();
    expect((await told(started())).at(-1)).toEqual(["acme", changedMs, 3]);
  });

  test("is empty for models that are not in the catalog", async () => {
    expect(await started().of(["acme/none"])).toEqual([]);
    expect(await started().of([])).toEqual([]);
  });
});
