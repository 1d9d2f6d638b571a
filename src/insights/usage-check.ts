import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import { allTransfersSql } from "../platform/storage/migrations/2026-11-26-closed-months.ts";
import { readUnfolded, type UnfoldedSums } from "../platform/storage/growths.ts";

/** Reads rows from a database of either engine. */
type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

const figures = ["requests", "errors", "prompt_tokens", "completion_tokens", "cost_nano"] as const;
type Figures = Record<(typeof figures)[number], bigint>;
type FiguresByDay = Map<string, Figures>;

/** Sums of usage that have a row for each workspace, with what makes days of their buckets. */
const tables = [
  { table: "usage_hours", bucket: "hour", perDay: dayMs / hourMs },
  { table: "usage_days", bucket: "day", perDay: 1 },
  { table: "usage_key_days", bucket: "day", perDay: 1 },
] as const;

const sumsSql = figures.map((name) => `sum(${name}) as ${name}`).join(", ");
const recordedSql = `select workspace_id, created_at_ms / ${dayMs} as day, count(*) as requests,
    sum(case when status in ('cut', 'failed') then 1 else 0 end) as errors, sum(prompt_tokens) as prompt_tokens,
    sum(completion_tokens) as completion_tokens, sum(cost_nano) as cost_nano
  from generations group by workspace_id, created_at_ms / ${dayMs}`;
const uncollectedSql = "select sum(uncollected_nano) as amount from uncollected_days";
const unpaidSql = (transfers: string): string =>
  `select sum(amount_nano) as amount from ${transfers} as unpaid where kind = 'uncollected'`;

/**
 * Where the sums of usage differ from the generation records: days of a workspace whose records are
 * all there still. Requests that fail by the thousand are counted without a record, so there may be
 * more of them than records; what they cost may not differ.
 */
export async function checkUsage(query: Query): Promise<string[]> {
  const unfolded = await readUnfolded(query);
  const recorded: FiguresByDay = new Map();
  const oldestDay = new Map<string, number>();
  for (const row of await query(recordedSql)) {
    const [workspaceId, day] = [String(row["workspace_id"]), Number(row["day"])];
    addFigures(recorded, nameOf(workspaceId, day), row);
    oldestDay.set(workspaceId, Math.min(day, oldestDay.get(workspaceId) ?? Infinity));
  }
  const problems: string[] = [];
  for (const { table, bucket, perDay } of tables) {
    const summed = await readSums(query, { table, bucket, perDay, unfolded });
    for (const [name, records] of recorded) {
      const [workspaceId = "", day] = name.split(" ");
      // Of the oldest day some records may be gone.
      if (Number(day) > (oldestDay.get(workspaceId) ?? 0))
        problems.push(...differences({ table, name, records, sums: summed.get(name) }));
    }
  }
  return [...problems, ...(await checkUncollected(query, unfolded))];
}

const nameOf = (workspaceId: string, day: number): string => `${workspaceId} ${day}`;

function addFigures(into: FiguresByDay, name: string, row: Record<string, unknown>): void {
  const known = into.get(name);
  const grown = figures.map((figure) => [
    figure,
    (known?.[figure] ?? 0n) + BigInt(String(row[figure] ?? 0)),
  ]);
  into.set(name, Object.fromEntries(grown) as Figures);
}

async function readSums(
  query: Query,
  {
    table,
    bucket,
    perDay,
    unfolded,
  }: { table: string; bucket: string; perDay: number; unfolded: UnfoldedSums },
): Promise<FiguresByDay> {
  const summed: FiguresByDay = new Map();
  const rows = await query(
    `select workspace_id, ${bucket} / ${perDay} as day, ${sumsSql} from ${table} group by workspace_id, ${bucket} / ${perDay}`,
  );
  for (const row of rows)
    addFigures(summed, nameOf(String(row["workspace_id"]), Number(row["day"])), row);
  for (const row of unfolded(table)) {
    const day = Math.floor(Number(row[bucket]) / perDay);
    addFigures(summed, nameOf(String(row["workspace_id"]), day), row);
  }
  return summed;
}

function differences({
  table,
  name,
  records,
  sums,
}: {
  table: string;
  name: string;
  records: Figures;
  sums: Figures | undefined;
}): string[] {
  return figures.flatMap((figure) => {
    const sum = sums?.[figure] ?? 0n;
    const isRight = figure === "cost_nano" ? sum === records[figure] : sum >= records[figure];
    if (isRight) return [];
    const [workspaceId = "", day] = name.split(" ");
    const date = new Date(Number(day) * dayMs).toISOString().slice(0, 10);
    return [
      `usage: ${figure} of ${workspaceId} on ${date} are ${sum} in ${table}, its records add up to ${records[figure]}`,
    ];
  });
}

async function checkUncollected(query: Query, unfolded: UnfoldedSums): Promise<string[]> {
  const [counted, booked] = await Promise.all(
    [uncollectedSql, unpaidSql(await allTransfersSql(query))].map(async (text) =>
      BigInt(String((await query(text))[0]?.["amount"] ?? 0)),
    ),
  );
  const sum = unfolded("uncollected_days").reduce(
    (total, row) => total + BigInt(String(row["uncollected_nano"] ?? 0)),
    counted ?? 0n,
  );
  return sum === booked
    ? []
    : [`usage: ${sum} are counted as uncollected, the transfers add up to ${booked}`];
}
