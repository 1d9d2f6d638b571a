import { expect } from "bun:test";
import type { Kysely } from "kysely";
import type { GenerationRecord } from "../../src/insights/generation-record.ts";
import { dayMs, hourMs } from "../../src/platform/kernel/clock.ts";
import type { InsightTables } from "./generation-records.ts";

/** Sums records by a name made of each, in the format of the counters. */
function sumsBy(
  records: readonly GenerationRecord[],
  nameOf: (record: GenerationRecord) => string,
): Record<string, string> {
  const sums = new Map<string, bigint[]>();
  for (const record of records) {
    const { usage } = record.detail;
    const row = [
      1,
      record.status === "cut" ? 1 : 0,
      record.promptTokens,
      record.completionTokens,
      usage["cacheReadTokens"] ?? 0,
      usage["reasoningTokens"] ?? 0,
      record.costNanoUsd,
    ];
    const known = sums.get(nameOf(record)) ?? row.map(() => 0n);
    sums.set(
      nameOf(record),
      known.map((sum, index) => sum + BigInt(row[index] ?? 0)),
    );
  }
  return Object.fromEntries([...sums].map(([name, values]) => [name, values.join(" ")]));
}

const columns = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_nano",
] as const;

const written = <Row extends Record<(typeof columns)[number], number | bigint>>(
  rows: readonly Row[],
  nameOf: (row: Row) => string,
) =>
  Object.fromEntries(
    rows.map((row) => [nameOf(row), columns.map((column) => String(row[column])).join(" ")]),
  );

/** Expects every counter to be the sum of these records and nothing else. */
export async function expectCountersToMatch(
  database: Kysely<InsightTables>,
  records: readonly GenerationRecord[],
): Promise<void> {
  const keyOf = ({ workspaceId, keyId, model, provider }: GenerationRecord): string =>
    [workspaceId, keyId, model, provider].join(" ");
  const hours = await database.selectFrom("usage_hours").selectAll().execute();
  expect(
    written(
      hours,
      (row) => `${row.hour} ${row.workspace_id} ${row.key_id} ${row.model} ${row.provider}`,
    ),
  ).toEqual(
    sumsBy(records, (record) => `${Math.floor(record.createdAtMs / hourMs)} ${keyOf(record)}`),
  );
  const days = await database.selectFrom("usage_days").selectAll().execute();
  expect(
    written(
      days,
      (row) => `${row.day} ${row.workspace_id} ${row.key_id} ${row.model} ${row.provider}`,
    ),
  ).toEqual(
    sumsBy(records, (record) => `${Math.floor(record.createdAtMs / dayMs)} ${keyOf(record)}`),
  );
  const keyDays = await database.selectFrom("usage_key_days").selectAll().execute();
  expect(
    written(keyDays, (row) => `${row.day} ${row.workspace_id} ${row.key_id} ${row.model}`),
  ).toEqual(
    sumsBy(records, ({ createdAtMs, workspaceId, keyId, model }) =>
      [Math.floor(createdAtMs / dayMs), workspaceId, keyId, model].join(" "),
    ),
  );
  const network = await database
    .selectFrom("network_days")
    .selectAll()
    .where("requests", ">", 0)
    .execute();
  expect(written(network, (row) => `${row.day} ${row.model} ${row.provider}`)).toEqual(
    sumsBy(
      records,
      ({ createdAtMs, model, provider }) =>
        `${Math.floor(createdAtMs / dayMs)} ${model} ${provider}`,
    ),
  );
  const whole = await database.selectFrom("network_hours").selectAll().execute();
  expect(whole.reduce((sum, { requests }) => sum + requests, 0)).toBe(records.length);
  expect(whole.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(
    records.reduce(
      (sum, { promptTokens, completionTokens }) => sum + promptTokens + completionTokens,
      0,
    ),
  );
}
