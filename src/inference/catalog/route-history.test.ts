import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { startGateway, type TestGateway } from "../../../test/support/gateway.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { RouteHistory, uptimeDays } from "./route-history.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

const clock = new FakeClock();
const today = Math.floor(clock.nowMs() / dayMs);

const unused = {
  errors: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  reasoning_tokens: 0,
  cost_nano: 0,
};

const row = (
  daysAgo: number,
  model: string,
  provider: string,
  [requests, attempts, failures]: readonly [number, number, number],
) => ({ ...unused, day: today - daysAgo, model, provider, requests, attempts, failures });

const rows = [
  row(0, "a/one", "acme", [5, 6, 1]),
  row(0, "a/one", "other", [2, 2, 0]),
  row(0, "a/two", "acme", [1, 4, 3]),
  row(6, "a/one", "acme", [10, 10, 0]),
  row(7, "a/one", "acme", [100, 100, 50]),
  row(uptimeDays - 1, "a/one", "acme", [1, 8, 2]),
  row(uptimeDays, "a/one", "acme", [1, 9, 9]),
];

const engines: readonly [string, () => Promise<{ storageUrl?: string }>][] = [
  ["SQLite", () => Promise.resolve({})],
  ["Postgres", async () => ({ storageUrl: await migratedDatabase() })],
];

describe.each(engines)("route history on %s", (_, open) => {
  let gateway: TestGateway;
  let history: RouteHistory;
  beforeAll(async () => {
    gateway = await startGateway(await open());
    const { database } = gateway.app.storage;
    history = new RouteHistory({ database: withTables(database), clock });
    await database.insertInto("network_days").values(rows).execute();
  });
  afterAll(() => gateway.stop());

  test("counts weekly requests over seven days including today", async () => {
    expect(Object.fromEntries(await history.weeklyRequests())).toEqual({ "a/one": 17, "a/two": 1 });
  });

  test("lists uptime of ninety days, oldest first, summed over the given models", async () => {
    const days = async (models: string[], provider: string) =>
      (await history.uptime({ models, providers: [provider] })).get(provider);
    const one = await days(["a/one"], "acme");
    expect(one).toHaveLength(uptimeDays);
    expect(one?.at(0)).toEqual({ day: today - uptimeDays + 1, attempts: 8, failures: 2 });
    expect(one?.at(-8)).toMatchObject({ attempts: 100, failures: 50 });
    expect(one?.at(-1)).toEqual({ day: today, attempts: 6, failures: 1 });
    expect((await days(["a/one", "a/two"], "acme"))?.at(-1)).toEqual({
      day: today,
      attempts: 10,
      failures: 4,
    });
    expect((await days(["a/one"], "unknown"))?.every(({ attempts }) => attempts === 0)).toBe(true);
  });

  test("is empty for no models and no providers", async () => {
    expect(await history.uptime({ models: [], providers: [] })).toEqual(new Map());
  });
});
