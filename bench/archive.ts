import { tmpdir } from "node:os";
import { parseArgs } from "node:util";
import { ArchiveClient } from "../src/insights/archive/archive-client.ts";
import { ArchiveReads } from "../src/insights/archive/archive-reads.ts";
import { lowestIdAt } from "../src/insights/generation-record.ts";
import { archiveTable, prepareArchive } from "../src/insights/archive/archive-tables.ts";
import { dayMs } from "../src/platform/kernel/clock.ts";
import { startClickHouse } from "../test/support/clickhouse.ts";
import { describeMachine } from "./machine.ts";
import { alignedTable } from "./report.ts";
import { median } from "./results.ts";

/** What a year's usage by model and key may take at the median, in milliseconds. */
const barMs = 500;
const timesAsked = 11;
const days = 365;
const stepRecords = 1_000_000;

const { values: options } = parseArgs({
  options: { records: { type: "string", default: "10000000" } },
});
const records = Number(options.records);
const toMs = new Date().setUTCHours(0, 0, 0, 0);
const fromMs = toMs - days * dayMs;

/** A step of the records: one workspace, five keys and models, four providers, spread over a year. */
const seedSql = (from: number): string => `insert into ${archiveTable}
  select
    bitOr(bitShiftLeft(toUInt128(at), 80), toUInt128(rand64(number))) as id, at as created_at_ms,
    'ws_bench' as workspace_id,
    concat('key_', toString(number % 5)) as key_id, 'chat' as surface, model as requested_model,
    concat('maker/model-', toString(intDiv(number, 5) % 5)) as model, concat('provider-', toString(number % 4)) as provider,
    model as upstream_model, concat('chatcmpl-', hex(rand64(number))) as upstream_id,
    if(number % 50 = 0, 'failed', 'completed') as status, 'stop' as finish_reason, number % 2 as streamed,
    number % 5000 as prompt_tokens, number % 900 as completion_tokens, number % 1000003 as cost_nano,
    number % 3000 as latency_ms, number % 400 as first_token_ms,
    concat('{"usage":{"inputTokens":', toString(number % 5000), ',"cacheReadTokens":', toString(number % 700),
      '},"priceVersion":"v1","price":{"prompt":"0.5","completion":"1.5"},"holdNanoUsd":"120000","sessionId":"s',
      toString(intDiv(number, 20)), '"}') as detail
  from (select number + ${from} as number, toInt64(${fromMs} + intDiv((number + ${from}) * ${days * dayMs}, ${records})) as at
    from numbers(${Math.min(stepRecords, records - from)}))`;

const clickhouse = await startClickHouse();
try {
  const client = new ArchiveClient({ url: clickhouse.urlOf("bench"), certificates: [] });
  await prepareArchive(client, undefined);
  const seededFromMs = performance.now();
  for (let from = 0; from < records; from += stepRecords)
    await clickhouse.run("bench", seedSql(from));
  const seedSeconds = (performance.now() - seededFromMs) / 1_000;
  // The server merges months that are over by itself, a day later.
  await clickhouse.run("bench", `optimize table ${archiveTable} final`);
  const [size] = await clickhouse.ask(
    "bench",
    `select toString(sum(rows)) as rows, toString(count()) as parts, formatReadableSize(sum(bytes_on_disk)) as size
     from system.parts where active and database = 'bench' and table = '${archiveTable}'`,
  );
  console.log(JSON.stringify(describeMachine(tmpdir())));
  console.log(
    `${size?.["rows"]} records in ${size?.["parts"]} parts, ${size?.["size"]}, seeded in ${seedSeconds.toFixed(0)} s`,
  );
  const reads = new ArchiveReads(client);
  const range = { workspaceId: "ws_bench", fromMs, toMs };
  const everything = {
    workspaceId: "ws_bench",
    filter: {},
    low: lowestIdAt(fromMs),
    end: lowestIdAt(toMs),
  };
  const asked: Record<string, () => Promise<unknown>> = {
    "a year's usage by model and key, by day": () =>
      reads.sums({ ...range, interval: "day", groupBy: ["model", "key_id"] }),
    "a year's usage by day": () => reads.sums({ ...range, interval: "day", groupBy: [] }),
    "a month's usage by hour": () =>
      reads.sums({ ...range, fromMs: toMs - 31 * dayMs, interval: "hour", groupBy: [] }),
    "a year's histogram of failed requests": () =>
      reads.histogram({ ...range, filter: { statuses: ["failed"] } }, 7 * dayMs),
    "the first page of a session a year ago": () =>
      reads.page(
        {
          workspaceId: "ws_bench",
          filter: { sessionId: "s17" },
          low: lowestIdAt(fromMs),
          end: lowestIdAt(toMs),
        },
        101,
      ),
    "the newest page": () => reads.page(everything, 101),
  };
  const rows: string[][] = [["question", "median ms", "slowest ms"]];
  let worst = 0;
  for (const [name, ask] of Object.entries(asked)) {
    const times: number[] = [];
    for (let time = 0; time < timesAsked; time++) {
      const startedMs = performance.now();
      await ask();
      times.push(performance.now() - startedMs);
    }
    worst ||= median(times);
    rows.push([name, median(times).toFixed(0), Math.max(...times).toFixed(0)]);
  }
  console.log(alignedTable(rows));
  if (worst > barMs) process.exitCode = 1;
  await client.close();
} finally {
  await clickhouse.stop();
}
