import { queryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { queryOf, request } from "../../lib/api.ts";
import { countOf } from "../../lib/format.ts";
import {
  type Range,
  type RangeSearch,
  dayStart,
  rangeBefore,
  rangeOf,
  timeZone,
} from "../../lib/time.ts";

/** Sums of one bucket, of one group where they are grouped. */
export type UsageRow = Row<"GET /analytics/usage">;

/** Rows of a span of whole buckets; a bucket without a request has no row. */
export type Usage = Omit<Answers["GET /analytics/usage"], "object">;

/** What the API groups usage by. */
export type UsageGroup =
  | "model"
  | "key"
  | "provider"
  | "app"
  | "customer"
  | "preset"
  | "session"
  | "tag";

const dayMs = 86_400_000;
/** Up to here a range is shown by the hour. */
const hoursMaxMs = 3 * dayMs;

/** A range as whole UTC days, or whole hours where it is short: what the API counts by. */
function wholeBuckets({ fromMs, toMs }: Range): Range & { interval: "hour" | "day" } {
  const interval = toMs - fromMs <= hoursMaxMs ? "hour" : "day";
  const stepMs = interval === "hour" ? dayMs / 24 : dayMs;
  const count = Math.ceil((toMs - fromMs) / stepMs);
  const endMs = Math.ceil(toMs / stepMs) * stepMs;
  return { fromMs: endMs - count * stepMs, toMs: endMs, interval };
}

/** The most days that are counted in another zone than UTC. */
const zonedDaysMax = 30;

/** The same as whole days of the person's zone; undefined where the API counts UTC days alone. */
function wholeZonedDays({ fromMs, toMs }: Range): Range | undefined {
  const days = Math.ceil((toMs - fromMs) / dayMs);
  if (timeZone() === "UTC" || toMs - fromMs <= hoursMaxMs || days > zonedDaysMax) return undefined;
  // From noon to noon, so that a day of 23 or 25 hours stays one.
  const lastNoonMs = dayStart(toMs - 1) + dayMs / 2;
  return {
    fromMs: dayStart(lastNoonMs - (days - 1) * dayMs),
    toMs: dayStart(lastNoonMs + dayMs),
  };
}

/** Whether the days of a range can be those of the person's zone. */
export const hasZonedDays = (range: RangeSearch): boolean =>
  wholeZonedDays(rangeOf(range, "14d")) !== undefined;

/** Usage over a range, or over the period of the same length before it. */
export function usageQuery({
  range,
  group,
  second,
  tag = "",
  before = false,
  local = false,
  workspaceId,
}: {
  range: RangeSearch;
  group?: UsageGroup | undefined;
  /** Divides each group once more. */
  second?: UsageGroup | undefined;
  /** The name of the tag, where usage is grouped by one. */
  tag?: string;
  before?: boolean;
  /** Counts the days of the person's zone, where the range is short enough. */
  local?: boolean;
  /** Another workspace than the person's own; for operators. */
  workspaceId?: string | undefined;
}) {
  const path =
    workspaceId === undefined
      ? "/analytics/usage"
      : `/admin/workspaces/${encodeURIComponent(workspaceId)}/usage`;
  const wanted = rangeOf(range, "14d");
  const { interval, ...inUtc } = wholeBuckets(wanted);
  const zoned = local ? wholeZonedDays(wanted) : undefined;
  const whole = zoned ?? inUtc;
  const { fromMs, toMs } = before ? rangeBefore(whole) : whole;
  const zone = zoned === undefined ? undefined : timeZone();
  const groups = [group, second === group ? undefined : second]
    .filter((each) => each !== undefined && (each !== "tag" || tag !== ""))
    .map((each) => (each === "tag" ? `tag:${tag}` : each))
    .join(",");
  return queryOptions({
    queryKey: ["usage", path, fromMs, toMs, interval, groups, zone],
    queryFn: () =>
      request<Usage>(
        `${path}${queryOf({
          from: new Date(fromMs).toISOString(),
          to: new Date(toMs).toISOString(),
          interval,
          group_by: groups || undefined,
          time_zone: zone,
        })}`,
      ),
  });
}

/** A disjoint part of what was used, with what was charged for it. */
export type UsagePart = Row<"GET /analytics/usage/parts">;

const divisions = ["model", "provider", "key"] as const;

/** What parts can be divided by. */
export type Division = (typeof divisions)[number];
export const isDivision = (group: string | undefined): group is Division =>
  divisions.some((each) => each === group);

/** The parts of usage over a range, in whole hours or days of UTC. */
export function partsQuery(range: RangeSearch, division: Division | undefined) {
  const { fromMs, toMs } = wholeBuckets(rangeOf(range, "14d"));
  return queryOptions({
    queryKey: ["usage", "parts", fromMs, toMs, division],
    queryFn: () =>
      request<Answers["GET /analytics/usage/parts"]>(
        `/analytics/usage/parts${queryOf({
          from: new Date(fromMs).toISOString(),
          to: new Date(toMs).toISOString(),
          group_by: division,
        })}`,
      ),
  });
}

/** One figure over all rows. */
export const sumOf = (
  rows: readonly UsageRow[],
  figure: "requests" | "errors" | "tokens" | "cost" | "cached_tokens" | "prompt_tokens",
): number => rows.reduce((sum, row) => sum + row[figure], 0);

/** What a page may group by: what the API groups by, the person behind a key, and the parts. */
export type PageGroup = UsageGroup | "person" | "part";

/** Names by id, each of one alone, and who made a key; what the session may not see keeps its id. */
export type Names = Readonly<
  Record<
    "keys" | "makers" | "people" | "presets" | "customers" | "providers",
    ReadonlyMap<string, string>
  >
>;

/** The group of a row, by its name. */
export function groupOf(row: UsageRow, group: PageGroup, names: Names): string {
  const named = (of: keyof Names, id: string | null | undefined, none = "none"): string =>
    id ? (names[of].get(id) ?? id) : none;
  if (group === "model") return row.model ?? "unknown";
  if (group === "part") return "all";
  if (group === "preset") return named("presets", row.preset_id);
  if (group === "session") return row.session_id ?? "none";
  if (group === "provider") return named("providers", row.provider);
  if (group === "customer") return named("customers", row.customer);
  if (group === "app" || group === "tag") return row[group] ?? "none";
  if (group === "key") return named("keys", row.key_id, "unknown");
  return named("people", names.makers.get(row.key_id ?? ""), "unknown");
}

/** The filter of the list of requests for a group, and the names of what it takes by id. */
const filters: Partial<Record<PageGroup, readonly [filter: string, of?: keyof Names]>> = {
  model: ["model"],
  app: ["app"],
  session: ["session_id"],
  provider: ["provider", "providers"],
  key: ["key_id", "keys"],
  preset: ["preset_id", "presets"],
};

/** The filter of the list of requests that leads to those of a group; those of others have none. */
export function filterOf(
  group: PageGroup,
  name: string,
  names: Names,
): Readonly<Record<string, string>> | undefined {
  const [filter, of] = filters[group] ?? [];
  if (filter === undefined || name === "none" || name === "unknown") return undefined;
  const named = of === undefined ? [] : [...names[of]];
  return { [filter]: named.find(([, each]) => each === name)?.[0] ?? name };
}

/** The figures that are drawn. */
export type Figure = "cost" | "requests" | "tokens" | "errors";

const seriesMax = 6;
const colours = [
  "var(--series-1)",
  "var(--series-2)",
  "var(--series-3)",
  "var(--series-4)",
  "var(--series-5)",
  "var(--series-6)",
];

/** One group: its colour in the chart and its sum. */
interface Series {
  name: string;
  colour: string;
  total: number;
}

/** The sums of one figure by group, the largest first. */
export function totalsOf(
  rows: readonly UsageRow[],
  { figure, nameOf }: { figure: Figure; nameOf: (row: UsageRow) => string },
): Map<string, number> {
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(nameOf(row), (totals.get(nameOf(row)) ?? 0) + row[figure]);
  return new Map([...totals].toSorted((a, b) => b[1] - a[1]));
}

/** Lists the starts of all buckets of a span, so that hours and days without a request are seen. */
function bucketsOf({
  from,
  to,
  interval,
  time_zone: zone,
}: Pick<Usage, "from" | "to" | "interval" | "time_zone">): string[] {
  const endMs = Date.parse(to);
  const starts: string[] = [];
  for (let atMs = Date.parse(from); atMs < endMs; ) {
    starts.push(new Date(atMs).toISOString());
    // A day and a half later is within the next day, also where this one has 23 or 25 hours.
    atMs = interval === "hour" ? atMs + dayMs / 24 : dayStart(atMs + 1.5 * dayMs, zone);
  }
  return starts;
}

/** Adds to each bucket the figures of those before it. */
function addedUp(
  buckets: readonly Readonly<Record<string, number | string>>[],
  keys: readonly string[],
): Record<string, number | string>[] {
  const sums = new Map<string, number>();
  return buckets.map((bucket) => {
    for (const key of keys) sums.set(key, (sums.get(key) ?? 0) + Number(bucket[key] ?? 0));
    return { ...bucket, ...Object.fromEntries(sums) };
  });
}

/** The largest groups, and the sum of the others in a row of its own. */
export function limited(
  totals: ReadonlyMap<string, number>,
  limit: number,
): (readonly [name: string, total: number, isOther: boolean])[] {
  const all = [...totals];
  const rest = all.slice(limit);
  const shown = all.slice(0, limit).map(([name, total]) => [name, total, false] as const);
  const other = rest.reduce((sum, [, total]) => sum + total, 0);
  return rest.length === 0
    ? shown
    : [...shown, [countOf(rest.length, "other"), other, true] as const];
}

/**
 * Rows of the chart: one a bucket, with a figure for each of the largest groups and one for the
 * others.
 */
export function chartOf(
  usage: Usage,
  {
    figure,
    nameOf,
    cumulative = false,
  }: {
    figure: Figure;
    nameOf: (row: UsageRow) => string;
    /** Adds each bucket to those before it. */
    cumulative?: boolean;
  },
) {
  const { data: rows } = usage;
  const totals = [...totalsOf(rows, { figure, nameOf })];
  const largest = totals.slice(0, seriesMax).map(([name]) => name);
  const buckets = new Map<string, Record<string, number | string>>(
    bucketsOf(usage).map((bucket) => [bucket, { bucket }]),
  );
  for (const row of rows) {
    const name = nameOf(row);
    const index = largest.indexOf(name);
    const bucket = buckets.get(row.bucket) ?? { bucket: row.bucket };
    // By place, since a name may be anything, also that of the bucket.
    const series = index < 0 ? "other" : `series${index}`;
    bucket[series] = Number(bucket[series] ?? 0) + row[figure];
    buckets.set(row.bucket, bucket);
  }
  const other = totals.slice(seriesMax).reduce((sum, [, total]) => sum + total, 0);
  const series: (Series & { key: string })[] = [
    ...totals.slice(0, seriesMax).map(([name, total], index) => ({
      key: `series${index}`,
      name,
      total,
      colour: colours[index] ?? "",
    })),
    ...(other > 0
      ? [{ key: "other", name: "other", colour: "var(--series-other)", total: other }]
      : []),
  ];
  const sorted = [...buckets.values()].toSorted((a, b) =>
    String(a["bucket"]).localeCompare(String(b["bucket"])),
  );
  const keys = series.map(({ key }) => key);
  return { buckets: cumulative ? addedUp(sorted, keys) : sorted, series };
}
