import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FaultScrapes, testAlert } from "../../../test/support/alert-firing.ts";
import {
  type ArchivedStorage,
  archiveScrape,
  openArchived,
} from "../../../test/support/archive.ts";
import { type ClickHouseServer, startClickHouse } from "../../../test/support/clickhouse.ts";
import {
  openInsightStorage,
  recordInSeries,
  recordOf,
  settledUnit,
} from "../../../test/support/generation-records.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { dayMs, hourMs, minuteMs, systemClock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { JobRegistry } from "../health/job-registry.ts";
import { Retention } from "../retention.ts";
import { LogBudget } from "../log-budget.ts";
import { forgetOutbox } from "./outbox-add.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-archive-"));
const program = join(import.meta.dir, "..", "..", "..", "test", "support");
let clickhouse: ClickHouseServer;
let count = 0;
beforeAll(async () => {
  clickhouse = await startClickHouse();
}, 240_000);
afterAll(async () => {
  await clickhouse.stop();
  rmSync(root, { recursive: true, force: true });
});

const series = (length: number, from = 0) =>
  Array.from({ length }, (_, index) => recordInSeries(from + index));

/** A database and an archive of one's own. */
const fresh = (): { url: string; archiveUrl: string; name: string } => {
  const name = `archive_${++count}`;
  return { name, url: `sqlite:${join(root, `${name}.db`)}`, archiveUrl: clickhouse.urlOf(name) };
};

/** How many rows the archive has, without regard to repetitions, and of how many records. */
async function archived(name: string): Promise<{ rows: number; records: number }> {
  const [row] = await clickhouse.ask(
    name,
    "select toUInt32(count()) as rows, toUInt32(uniqExact(id)) as records from switchyard_generations",
  );
  return { rows: Number(row?.["rows"]), records: Number(row?.["records"]) };
}

/** The message that work fails with. */
const failureOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "it did not fail",
    (error: unknown) => String(error),
  );

const each = (records: number) => ({ rows: records, records });

async function within<Result>(
  options: Parameters<typeof openArchived>[0],
  work: (opened: ArchivedStorage) => Promise<Result>,
): Promise<Result> {
  const opened = await openArchived(options);
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

const engines: [string, () => Promise<string>][] = [
  ["SQLite", () => Promise.resolve(fresh().url)],
  ["Postgres", migratedDatabase],
];

describe.each(engines)("generation records in a database on %s", (_, databaseUrl) => {
  test("are archived once, in batches, and leave the outbox", async () => {
    const { name, archiveUrl } = fresh();
    await within({ url: await databaseUrl(), archiveUrl }, async ({ archive, settle }) => {
      await settle(...series(2_100));
      expect(await archive.outbox.count()).toBe(2_100);
      await archive.archiver.round();
      expect(await archived(name)).toEqual(each(2_100));
      expect(await archive.outbox.count()).toBe(0);
      expect(archive.figures).toMatchObject({ archived: 2_100, dropped: 0 });
    });
  }, 240_000);

  test("are archived when they are committed after newer ones were archived", async () => {
    const { name, archiveUrl } = fresh();
    await within({ url: await databaseUrl(), archiveUrl }, async ({ archive, settle }) => {
      const startedMs = Date.UTC(2026, 10, 20);
      const slow = recordOf({ createdAtMs: startedMs, id: newId("gen", startedMs) });
      const quick = recordOf({ createdAtMs: startedMs + hourMs });
      await settle(quick);
      await archive.archiver.round();
      await settle(slow);
      await archive.archiver.round();
      expect(await archived(name)).toEqual(each(2));
    });
  }, 240_000);

  test("are archived once if the response to an insert is lost", async () => {
    const { name, archiveUrl } = fresh();
    await within({ url: await databaseUrl(), archiveUrl }, async ({ archive, settle }) => {
      await settle(...series(30));
      await archive.archiver.round();
      await settle(...series(50, 30));
      await clickhouse.insertAnswers("lost");
      expect(await failureOf(archive.archiver.round())).toContain("lost");
      await clickhouse.inserted();
      expect(await archived(name)).toEqual(each(80));
      // Settled while the batch before it is undecided, and so no part of it.
      await settle(...series(20, 80));
      await archive.archiver.round();
      expect(await archived(name)).toEqual(each(100));
      expect(await archive.outbox.count()).toBe(0);
    });
  }, 240_000);
});

test("an archive that was down receives all records when it is back", async () => {
  const { name, url, archiveUrl } = fresh();
  await within({ url, archiveUrl }, async ({ archive, settle }) => {
    await settle(...series(10));
    await archive.archiver.round();
    await clickhouse.kill();
    expect(await archive.isUp()).toBe(false);
    for (let round = 1; round < 4; round++) {
      await settle(...series(10, 10 * round));
      expect(await failureOf(archive.archiver.round())).toContain("ECONNREFUSED");
    }
    expect(await archive.outbox.count()).toBe(30);
    await clickhouse.restart();
    await archive.archiver.round();
    expect(await archive.isUp()).toBe(true);
    expect(await archived(name)).toEqual(each(40));
  });
}, 240_000);

describe("an archive that is away when the gateway starts", () => {
  const clock = new FakeClock();
  let scrapes: FaultScrapes;
  test("lags from the first failed round on, and no longer when it is back", async () => {
    const { url, archiveUrl } = fresh();
    await clickhouse.kill();
    await within({ url, archiveUrl, clock }, async (opened) => {
      const { archive, settle } = opened;
      await settle(...series(10));
      await archive.archiver.runLeading();
      const before = await archiveScrape(opened);
      clock.advance(11 * minuteMs);
      await archive.archiver.runLeading();
      scrapes = { before, during: await archiveScrape(opened) };
      expect(archive.figures.lagSeconds).toBe(660);
      await clickhouse.restart();
      await archive.archiver.runLeading();
      expect(archive.figures).toMatchObject({ lagSeconds: 0, archived: 10 });
    });
  }, 240_000);
  testAlert("SwitchyardArchiveBehind", () => scrapes);
});

test("records are archived once if the gateway is killed between insert and watermark", async () => {
  const { name, url, archiveUrl } = fresh();
  await clickhouse.insertAnswers("held");
  const child = Bun.spawn(
    [process.execPath, join(program, "archive-until-killed.ts"), url, archiveUrl, "500"],
    { stdout: "inherit", stderr: "inherit" },
  );
  await clickhouse.inserted();
  child.kill("SIGKILL");
  await child.exited;
  await clickhouse.insertAnswers("given");
  expect(await archived(name)).toEqual(each(500));
  await within({ url, archiveUrl }, async ({ archive, settle }) => {
    expect(await archive.outbox.count()).toBe(500);
    await settle(...series(10, 500));
    await archive.archiver.round();
    expect(await archived(name)).toEqual(each(510));
    expect(await archive.outbox.count()).toBe(0);
  });
}, 240_000);

test("two gateways that archive at the same time archive each record once", async () => {
  const { name, archiveUrl } = fresh();
  const url = await migratedDatabase();
  const options = { url, archiveUrl, severalGateways: true };
  const one = await openArchived(options);
  const other = await openArchived(options);
  try {
    // Both make the tables, fill the outbox and settle batches at once.
    for (let round = 0; round < 6; round++) {
      const from = round * 200;
      await Promise.all([
        one.settle(...series(100, from)),
        other.settle(...series(100, from + 100)),
        one.archive.archiver.round(),
        other.archive.archiver.round(),
      ]);
    }
    await one.archive.archiver.round();
    expect(await archived(name)).toEqual(each(1_200));
    expect(await one.archive.outbox.count()).toBe(0);
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
}, 240_000);

test("a new or re-enabled archive receives the earlier records of the database", async () => {
  const { name, url, archiveUrl } = fresh();
  const settleWithout = async (from: number): Promise<void> => {
    const storage = await openInsightStorage(url);
    await Promise.all(
      series(20, from).map((record) => storage.commits.commit(settledUnit(record))),
    );
    await forgetOutbox(withTables(storage.database));
    await storage.close();
  };
  await settleWithout(0);
  for (const records of [20, 40]) {
    await within({ url, archiveUrl }, async ({ archive }) => {
      expect(await archive.outbox.archivedBeforeMs()).toBe(0);
      await archive.archiver.round();
      expect(await archive.outbox.archivedBeforeMs()).toBeGreaterThan(0);
    });
    expect((await archived(name)).records).toBe(records);
    await settleWithout(records);
  }
}, 240_000);

/** Deletes what is due, as a gateway does every hour. */
const purge = (
  { storage, archive }: ArchivedStorage,
  { keepDays, room }: { keepDays: number; room?: { beforeMs: number; rows: number } },
): Promise<void> =>
  new Retention({
    generations: archive.stores.generations,
    usage: archive.stores.usage,
    archive,
    jobs: new JobRegistry(systemClock),
    clock: systemClock,
    keepDays,
    budget: Object.assign(new LogBudget({ sizes: never, budgetBytes: 1 }), {
      excess: () => Promise.resolve(room && { ...room, workspaceIds: ["ws_0", "ws_1", "ws_2"] }),
    }),
    workspaceIds: () => ["ws_0", "ws_1", "ws_2"],
    onError: () => undefined,
    onOverBudget: () => expect(storage.kind).toBe("sqlite"),
  }).purge();
const never = {
  atMost: () => Promise.resolve(0),
  workspaceIds: () => Promise.resolve([]),
  slices: () => Promise.resolve([]),
};

test("retention deletes no record before it is archived", async () => {
  const { url, archiveUrl } = fresh();
  await within({ url, archiveUrl }, async (opened) => {
    const { archive, storage, settle } = opened;
    const old = Array.from({ length: 6 }, (_, index) =>
      recordInSeries(index, systemClock.nowMs() - (10 - index) * dayMs),
    );
    await settle(...old);
    const rows = async (): Promise<number> =>
      (await storage.database.selectFrom("generations").select("id").execute()).length;
    await purge(opened, { keepDays: 1 });
    expect(await rows()).toBe(6);
    await archive.archiver.round();
    await purge(opened, { keepDays: 1 });
    expect(await rows()).toBe(0);
    expect(await archive.outbox.recordsFromMs()).toBeGreaterThan(
      systemClock.nowMs() - dayMs - hourMs,
    );
  });
}, 240_000);

let dropScrapes: FaultScrapes;
test("the oldest records are dropped and counted if the database has no room, archived or not", async () => {
  const { name, url, archiveUrl } = fresh();
  await within({ url, archiveUrl }, async (opened) => {
    const { archive, settle } = opened;
    const before = await archiveScrape(opened);
    const startMs = systemClock.nowMs() - hourMs;
    await settle(
      ...Array.from({ length: 100 }, (_, index) => recordInSeries(index, startMs + index * 1_000)),
    );
    await purge(opened, { keepDays: 90, room: { beforeMs: startMs + 30_000, rows: 30 } });
    expect(archive.figures.dropped).toBe(30);
    dropScrapes = { before, during: await archiveScrape(opened) };
    expect(await archive.outbox.count()).toBe(70);
    // Those of a batch that is undecided are counted when it is decided.
    expect(await archive.outbox.settle(20)).toBeString();
    await purge(opened, { keepDays: 90, room: { beforeMs: startMs + 40_000, rows: 10 } });
    await archive.archiver.round();
    expect(archive.figures).toMatchObject({ archived: 60, dropped: 40 });
    expect(await archived(name)).toEqual(each(60));
  });
}, 240_000);

testAlert("SwitchyardArchiveDropped", () => dropScrapes);

test("the archive deletes records older than its own keepDays", async () => {
  const { name, url, archiveUrl } = fresh();
  await within({ url, archiveUrl, keepDays: 30 }, async ({ archive, settle }) => {
    await settle(
      recordInSeries(1, systemClock.nowMs() - 31 * dayMs),
      recordInSeries(2, systemClock.nowMs() - 29 * dayMs),
    );
    await archive.archiver.round();
  });
  await clickhouse.ask(name, "select 1 from system.one");
  const [table] = await clickhouse.ask(
    name,
    `select create_table_query as text from system.tables where database = '${name}' and name = 'switchyard_generations'`,
  );
  expect(table?.["text"]).toContain("toIntervalDay(30)");
  await within({ url, archiveUrl }, async ({ archive, settle }) => {
    await settle(recordInSeries(3));
    await archive.archiver.round();
  });
  const [after] = await clickhouse.ask(
    name,
    `select create_table_query as text from system.tables where database = '${name}' and name = 'switchyard_generations'`,
  );
  expect(after?.["text"]).not.toContain("TTL");
}, 240_000);

test("records of closed workspaces are erased after the retention of the database", async () => {
  const { name, url, archiveUrl } = fresh();
  const options = { url, archiveUrl, closedWorkspaces: ["ws_1", "ws_none"] };
  await within(options, async ({ archive, settle }) => {
    const nowMs = systemClock.nowMs();
    // Of two workspaces, one of them closed, each with an old record and a new one.
    const records = [1, 4, 2, 5].map((index) =>
      recordInSeries(index, nowMs - (index < 4 ? 91 : 89) * dayMs),
    );
    await settle(...records);
    await archive.archiver.round();
    expect(await archived(name)).toEqual(each(4));
    await archive.archiver.erase();
    const left = await clickhouse.ask(
      name,
      "select workspace_id from switchyard_generations order by workspace_id",
    );
    expect(left.map(({ workspace_id: id }) => id)).toEqual(["ws_1", "ws_2", "ws_2"]);
  });
}, 240_000);
