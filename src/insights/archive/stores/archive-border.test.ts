import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ArchivedStorage, openArchived } from "../../../../test/support/archive.ts";
import { type ClickHouseServer, startClickHouse } from "../../../../test/support/clickhouse.ts";
import { attemptOf, recordInSeries } from "../../../../test/support/generation-records.ts";
import { isNightly } from "../../../../test/support/nightly.ts";
import { migratedDatabase } from "../../../../test/support/postgres.ts";
import { dayMs, hourMs } from "../../../platform/kernel/clock.ts";
import { GenerationFigures } from "../../generation-figures.ts";
import type { GenerationRecord } from "../../generation-record.ts";
import { GenerationStore } from "../../generation-store.ts";
import {
  type GenerationFilter,
  type GenerationRange,
  GenerationSearch,
} from "../../generation-search.ts";
import { type UsageQuery, UsageStore } from "../../usage/usage-store.ts";
import { ArchiveUnavailableError } from "../archive-client.ts";
import { withTables } from "../../../platform/storage/with-tables.ts";

/** Records in the order of their ids; each is another minute of three days. */
const firstMs = Date.UTC(2026, 10, 18);
const records: GenerationRecord[] = Array.from({ length: 260 }, (_, index) => {
  const record = recordInSeries(index, firstMs + index * 17 * 60_000);
  const isFailed = index % 9 === 4;
  return {
    ...record,
    // A digit of one's own, so that ids are the same on every engine.
    id: `gen_${record.createdAtMs.toString(16).padStart(12, "0")}${index.toString(16).padStart(20, "a")}`,
    ...(isFailed
      ? {
          status: "failed",
          finishReason: null,
          attempts: [attemptOf({ outcome: "failed", status: 502 })],
        }
      : {}),
    streamed: index % 2 === 0,
    firstTokenMs: index % 2 === 0 ? 5 + (index % 40) : null,
    latencyMs: 30 + (index % 90),
    upstreamId: index % 3 === 0 ? `chatcmpl-${index}` : null,
    costNanoUsd: index === 3 ? 9_007_199_254_740_991n : record.costNanoUsd,
    detail: {
      ...record.detail,
      ...(isFailed ? { error: { code: "provider_error", status: 502 } } : {}),
      ...(index % 5 === 0 ? { appTitle: `It's "an" app\n\\ ${"é😀"}` } : {}),
      ...(index % 4 === 0 ? { sessionId: "session-1" } : {}),
      ...(index % 7 === 0 ? { presetId: `prs_${index % 5}` } : {}),
      ...(index % 5 === 0 ? { team: `team_${index % 2}` } : {}),
      ...(index % 4 === 0 ? { batchId: `batch_${index % 8}` } : {}),
      ...(index % 8 === 0 ? { credentialSource: "own_byok" } : {}),
    },
  };
});
const lastMs = records.at(-1)?.createdAtMs ?? 0;
const nowMs = lastMs + hourMs;
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs, livedMs: () => nowMs };
const middleMs = firstMs + 36 * hourMs;

const filters: Record<string, GenerationFilter> = {
  nothing: {},
  "models and keys": { models: ["maker/model-1", "maker/model-2"], keyIds: ["key_1", "key_3"] },
  "requested models": { requestedModels: ["maker/model-3"] },
  "an empty list of providers": { providers: [] },
  "providers and surfaces": { providers: ["provider-1"], surfaces: ["chat"] },
  statuses: { statuses: ["failed", "cut"] },
  "error codes": { errors: ["provider_error"] },
  "an app title": { appTitle: `It's "an" app\n\\ ${"é😀"}` },
  "a session": { sessionId: "session-1" },
  presets: { presetIds: ["prs_0", "prs_1"] },
  teams: { teamIds: ["team_1"] },
  batches: { batchIds: ["batch_4"] },
  streamed: { streamed: true },
  "BYOK requests": { byok: true },
  "requests without BYOK": { byok: false },
  "cost and latency": { costNanoMin: 100_000_000n, latencyMsMin: 60 },
};

interface Stores {
  usage: UsageStore;
  search: GenerationSearch;
  figures: GenerationFigures;
  generations: GenerationStore;
}

const root = mkdtempSync(join(tmpdir(), "switchyard-reads-"));
let clickhouse: ClickHouseServer;
const opened: ArchivedStorage[] = [];
/** What answers, by its name: two row stores, and archives that hold more or less of the records. */
const answering: Record<string, Stores> = {};

const open = async (
  url: string,
  reads: "older" | "always",
  name: string,
): Promise<ArchivedStorage> => {
  const archived = await openArchived({ url, archiveUrl: clickhouse.urlOf(name), reads, clock });
  opened.push(archived);
  await archived.settle(...records);
  return archived;
};

beforeAll(async () => {
  clickhouse = await startClickHouse();
  const files = (name: string): string => `sqlite:${join(root, `${name}.db`)}`;
  const kept = await open(files("kept"), "always", "kept");
  const options = { ...kept.storage, database: withTables(kept.storage.database) };
  answering["SQLite"] = {
    usage: new UsageStore(options),
    search: new GenerationSearch(options),
    figures: new GenerationFigures(options),
    generations: new GenerationStore(options),
  };
  await kept.archive.archiver.round();
  answering["ClickHouse, where it is always read"] = kept.archive.stores;
  const divided = await open(await migratedDatabase(), "older", "divided");
  const { storage, archive } = divided;
  answering["Postgres and ClickHouse, each half of it"] = archive.stores;
  const postgres = await open(await migratedDatabase(), "older", "unused");
  answering["Postgres"] = postgres.archive.stores;
  await archive.archiver.round();
  await archive.deleting(middleMs);
  for (const workspaceId of ["ws_0", "ws_1", "ws_2"])
    await archive.stores.generations.deleteBefore({
      workspaceId,
      beforeMs: middleMs,
      limit: 1_000,
    });
  const left = await storage.database.selectFrom("generations").select("id").execute();
  expect(left.length).toBeLessThan(200);
}, 600_000);
afterAll(async () => {
  for (const each of opened) await each.close();
  await clickhouse.stop();
  rmSync(root, { recursive: true, force: true });
});

/** The answer that all of them give alike. */
async function agreed<Answer>(ask: (stores: Stores) => Promise<Answer>): Promise<Answer> {
  const expected = await ask(answering["SQLite"] as Stores);
  for (const [name, stores] of Object.entries(answering))
    expect({ [name]: await ask(stores) }).toEqual({ [name]: expected });
  return expected;
}

const ranges = {
  "the whole time": { fromMs: firstMs, toMs: lastMs + 1 },
  "a range across the border": { fromMs: middleMs - 5 * hourMs, toMs: middleMs + 7 * hourMs },
  "a range that only the archive has": { fromMs: firstMs, toMs: firstMs + 3 * hourMs },
  "a range before the first record": { fromMs: firstMs - 9 * dayMs, toMs: firstMs },
};

/** By day every filter is read across the border, where both stores answer, and in one more range. */
const filtersFor = (name: string, place: number): [string, GenerationFilter][] =>
  Object.entries(filters).filter(
    (_, index) => isNightly || name === "a range across the border" || index % 4 === place,
  );

describe.each(Object.entries(ranges).map(([name, range], place) => [name, range, place] as const))(
  "SQLite, Postgres and ClickHouse return the same results for %s",
  (rangeName, range, place) => {
    test.each(filtersFor(rangeName, place))(
      "in lists, histograms, errors and latencies, filtered by %s",
      async (__, filter) => {
        const query: GenerationRange = { workspaceId: "ws_1", filter, ...range };
        await agreed(({ search }) => search.page({ ...query, limit: 1_000 }));
        await agreed(({ figures }) => figures.histogram(query, nowMs));
        await agreed(async ({ figures }) =>
          (await figures.errors(query)).map((line) => JSON.stringify(line)).sort(),
        );
        await agreed(({ figures }) => figures.latencies(query));
      },
      600_000,
    );

    test("in usage by every group and interval", async () => {
      const groups: UsageQuery["groupBy"][] = [
        [],
        ["model"],
        ["provider", "key_id"],
        ["key_id", "model", "provider"],
      ];
      for (const interval of ["hour", "day"] as const)
        for (const groupBy of groups)
          await agreed(({ usage }) =>
            usage.sums({ workspaceId: "ws_2", ...range, interval, groupBy }),
          );
    }, 600_000);
  },
);

test("the filters of this suite match records, except for the empty one", async () => {
  for (const filter of Object.values(filters)) {
    const query = { workspaceId: "ws_1", filter, ...ranges["the whole time"], limit: 1_000 };
    const { records: found } = await agreed(({ search }) => search.page(query));
    expect(found.length > 0).toBe(filter.providers?.length !== 0);
  }
}, 600_000);

test("pages across the archive's border list every record once, in order", async () => {
  for (const limit of [1, 7, 50]) {
    const seen = await agreed(async ({ search }) => {
      const ids: string[] = [];
      for (let after: string | undefined; ; ) {
        const page = await search.page({
          workspaceId: "ws_0",
          filter: {},
          ...ranges["the whole time"],
          after,
          limit,
        });
        ids.push(...page.records.map(({ id }) => id));
        if (page.next === undefined) return ids;
        after = page.next;
      }
    });
    expect(seen).toEqual(seen.toSorted().toReversed());
    expect(seen.length).toBe(records.filter(({ workspaceId }) => workspaceId === "ws_0").length);
  }
}, 600_000);

test("a record is found by any form of its id, only by its workspace", async () => {
  for (const record of [records[0], records[100], records.at(-1)]) {
    const found = await agreed(({ generations }) =>
      generations.find(record?.workspaceId ?? "", record?.id ?? ""),
    );
    expect(found?.id).toBe(record?.id as string);
    const trace = record?.id.slice(4) ?? "";
    expect(await agreed(({ generations }) => generations.find("ws_9", trace))).toBeUndefined();
  }
  await agreed(({ generations }) => generations.find("ws_0", "gen_no-such-id"));
}, 600_000);

test("while the archive is down, the database serves its own range and refuses older ones", async () => {
  await clickhouse.kill();
  const everything = { workspaceId: "ws_1", filter: {}, ...ranges["the whole time"], limit: 1_000 };
  const always = answering["ClickHouse, where it is always read"] as Stores;
  const half = answering["Postgres and ClickHouse, each half of it"] as Stores;
  const whole = answering["SQLite"] as Stores;
  expect(await always.search.page(everything)).toEqual(await whole.search.page(everything));
  const usage = { workspaceId: "ws_1", ...ranges["the whole time"], groupBy: [] };
  expect(await always.usage.sums({ ...usage, interval: "day" })).toEqual(
    await whole.usage.sums({ ...usage, interval: "day" }),
  );
  const newer = { ...everything, fromMs: middleMs };
  expect(await half.search.page(newer)).toEqual(await whole.search.page(newer));
  const failure: unknown = await half.search.page(everything).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ArchiveUnavailableError);
  expect(failure).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 10 });
}, 600_000);
