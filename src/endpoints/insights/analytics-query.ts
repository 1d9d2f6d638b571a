import { z } from "zod";
import { tagNamePattern } from "../../insights/generation-record.ts";
import {
  recordGroupNames,
  type RecordGroup,
  type RecordUsageQuery,
} from "../../insights/usage/record-usage-store.ts";
import { usageGroups, type UsageGroup, type UsageLine } from "../../insights/usage/usage-store.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import { isTimeZone, startOfZonedDay, zonedDayOf } from "../../platform/kernel/time/zoned-days.ts";
import { momentMsField } from "../account/account-fields.ts";

/** The declarations that routes of a workspace's analytics share. */
export const forAnalytics = {
  method: "GET",
  base: "api",
  access: { managementScope: "read:analytics", session: true },
  counting: "at-door",
  tag: "Insights",
  encodeError: encodeContractError,
} as const;

/** Returns the date of a zone's day, from the moment at which it begins. */
export const zonedDate = (zone: string, startMs: number): string =>
  new Date(zonedDayOf(zone, startMs + hourMs) * dayMs).toISOString().slice(0, 10);

/** Returns the whole days of a zone that a range overlaps. */
export function zonedRange(
  zone: string,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): { fromMs: number; toMs: number } {
  return {
    fromMs: startOfZonedDay(zone, zonedDayOf(zone, fromMs)),
    toMs: startOfZonedDay(zone, zonedDayOf(zone, toMs - 1) + 1),
  };
}

/**
 * Returns the UTC hours that begin within whole days of a zone. Where midnight cuts an hour, as in
 * zones with half hours, that hour counts for the day in which it begins.
 */
export const hoursWithin = ({ fromMs, toMs }: { fromMs: number; toMs: number }) => ({
  fromMs: Math.ceil(fromMs / hourMs) * hourMs,
  toMs: Math.ceil(toMs / hourMs) * hourMs,
});

const sums = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
] as const;

/** Returns what a line is grouped by. */
const groupsOf = (line: UsageLine): readonly (string | undefined)[] => [
  ...[line.model, line.key_id, line.provider, line.team_id, line.app],
  ...[line.customer, line.preset_id, line.session_id, line.tag],
];

/** Sums hourly lines to lines of a zone's days, in the order of the days. */
export function byZonedDay(lines: readonly UsageLine[], zone: string): UsageLine[] {
  const days = new Map<number, number>();
  const byGroup = new Map<string, UsageLine>();
  for (const line of lines) {
    const day = days.get(line.startMs) ?? zonedDayOf(zone, line.startMs);
    days.set(line.startMs, day);
    const group = JSON.stringify([day, ...groupsOf(line)]);
    const sum = byGroup.get(group);
    if (sum === undefined) {
      byGroup.set(group, { ...line, startMs: startOfZonedDay(zone, day) });
      continue;
    }
    for (const name of sums) sum[name] += line[name];
    sum.costNanoUsd += line.costNanoUsd;
  }
  return [...byGroup.values()].sort((one, other) => one.startMs - other.startMs);
}

/** The longest ranges in days: there are many hours, and older ones are kept only by the day. */
export const rangeDaysMax = { hour: 31, day: 366 } as const;
export const rangeDaysDefault = 7;
const activityDaysMax = 90;
const activityDaysDefault = 30;

const groupProblem =
  "must be among model, key, provider, team, app, customer, preset, session and tag:<name>, " +
  "several with commas between them and at most one tag";
const groupNames: Readonly<Record<string, UsageGroup | RecordGroup>> = {
  model: "model",
  key: "key_id",
  key_id: "key_id",
  provider: "provider",
  team: "team_id",
  team_id: "team_id",
  app: "app",
  customer: "customer",
  preset: "preset_id",
  preset_id: "preset_id",
  session: "session_id",
  session_id: "session_id",
};
const tagPrefix = "tag:";

/** What a query groups by: counters know some of it, and records all of it. */
interface UsageGrouping {
  groupBy: readonly UsageGroup[];
  /** Absent where counters suffice. */
  ofRecords?: Pick<RecordUsageQuery, "groupBy" | "tag">;
}

const groupSchema = z.string().transform((text, context): UsageGrouping => {
  if (text.trim() === "") return { groupBy: [] };
  const names = text.split(",").map((name) => name.trim());
  const tags = names.flatMap((name) =>
    name.startsWith(tagPrefix) ? [name.slice(tagPrefix.length)] : [],
  );
  const named = names.map((name) =>
    name.startsWith(tagPrefix) ? ("tag" as const) : groupNames[name],
  );
  if (
    named.includes(undefined) ||
    tags.length > 1 ||
    !tags.every((tag) => tagNamePattern.test(tag))
  )
    context.addIssue({ code: "custom", message: groupProblem });
  const groupBy = usageGroups.filter((group) => named.includes(group));
  const further = recordGroupNames.filter((group) => named.includes(group));
  if (further.length === 0) return { groupBy };
  return { groupBy, ofRecords: { groupBy: [...groupBy, ...further], tag: tags[0] } };
});

/** The range of every query. */
export const range = { from: momentMsField.optional(), to: momentMsField.optional() };

const zoneField = z
  .string()
  .max(100, "must have at most 100 characters")
  .refine(isTimeZone, "must be a time zone such as Europe/Berlin")
  .transform((zone) => (zone === "UTC" ? undefined : zone))
  .optional();

const usageSchema = z.object({
  ...range,
  time_zone: zoneField,
  interval: z.enum(["hour", "day"], "must be hour or day").default("day"),
  group_by: groupSchema.default({ groupBy: [] }),
});
const activitySchema = z.object({ ...range, time_zone: zoneField });

const documentedZone = z
  .string()
  .optional()
  .describe(
    "Time zone whose days are counted, such as Europe/Berlin. Default: UTC. At most 31 days per request. An hour that midnight " +
      "divides counts towards the day in which it begins.",
  );

/** The query strings as documents show them. */
export const analyticsQueries = {
  usage: z.object({
    from: z.string().optional(),
    to: z.string().optional(),
    interval: z.enum(["hour", "day"]).optional(),
    group_by: z
      .string()
      .optional()
      .describe(
        "model, key, provider, team, app, customer, preset, session or tag:<name>; separate several with commas. From team on, the " +
          "newest 60,000 records are counted, and counted_from says where they begin.",
      ),
    time_zone: documentedZone,
  }),
  activity: z.object({
    from: z.string().optional(),
    to: z.string().optional(),
    time_zone: documentedZone,
  }),
};

/** A range of wall times in milliseconds. The end is exclusive. */
interface TimeRange {
  fromMs: number;
  toMs: number;
}

/** Returns the requested range, within its bounds. Throws `bad_request`. */
export function rangeOf(
  given: { from?: number | undefined; to?: number | undefined },
  { nowMs, daysDefault, daysMax }: { nowMs: number; daysDefault: number; daysMax: number },
): TimeRange {
  const toMs = given.to ?? Math.max(nowMs, (given.from ?? 0) + 1);
  const fromMs = given.from ?? Math.max(0, toMs - daysDefault * dayMs);
  if (fromMs >= toMs) throw badField("from", "must be before to.");
  if (toMs - fromMs > daysMax * dayMs) {
    throw badField("from", `must be at most ${daysMax} days before to.`);
  }
  return { fromMs, toMs };
}

/** Reads the query of `GET /analytics/usage`. Throws `bad_request` with the invalid parameter. */
export function readUsageQuery(parameters: URLSearchParams, nowMs: number) {
  const {
    from,
    to,
    interval,
    group_by: grouping,
    time_zone: timeZone,
  } = checkBody(usageSchema, Object.fromEntries(parameters));
  // Hours are the same in every zone; days of zones other than UTC are summed from hours.
  const daysMax = rangeDaysMax[timeZone === undefined ? interval : "hour"];
  return {
    interval,
    ...grouping,
    timeZone: interval === "day" ? timeZone : undefined,
    ...rangeOf({ from, to }, { nowMs, daysDefault: rangeDaysDefault, daysMax }),
  };
}

/** Reads the query of `GET /analytics/activity`. Throws as above. */
export function readActivityQuery(
  parameters: URLSearchParams,
  nowMs: number,
): TimeRange & { timeZone: string | undefined } {
  const { time_zone: timeZone, ...given } = checkBody(
    activitySchema,
    Object.fromEntries(parameters),
  );
  return {
    timeZone,
    ...rangeOf(given, {
      nowMs,
      daysDefault: activityDaysDefault,
      daysMax: timeZone === undefined ? activityDaysMax : rangeDaysMax.hour,
    }),
  };
}
