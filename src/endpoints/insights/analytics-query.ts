import { z } from "zod";
import { isTimeZone } from "../../insights/zoned-days.ts";
import { usageGroups, type UsageGroup } from "../../insights/usage-store.ts";
import { checkBody } from "../../http/check-body.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { dayMs } from "../../platform/kernel/clock.ts";

/** Longest ranges in days: hours are many, and older ones are only kept by the day. */
export const rangeDaysMax = { hour: 31, day: 366 } as const;
export const rangeDaysDefault = 7;
const activityDaysMax = 90;
const activityDaysDefault = 30;

const timeProblem = "must be an ISO 8601 date or time, such as 2026-11-21 or 2026-11-21T12:00:00Z";
const isoTime =
  /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** A wall time in milliseconds; dates begin at midnight UTC. */
const timeSchema = z
  .string()
  .regex(isoTime, timeProblem)
  .transform((text) => Date.parse(text))
  .refine((atMs) => Number.isFinite(atMs) && atMs >= 0, timeProblem);

const groupProblem = "must be among model, key and provider, several with commas between them";
const groupNames: Readonly<Record<string, UsageGroup>> = {
  model: "model",
  key: "key_id",
  key_id: "key_id",
  provider: "provider",
};

const groupSchema = z.string().transform((text, context): readonly UsageGroup[] => {
  const named = text.split(",").map((name) => groupNames[name.trim()]);
  if (text.trim() === "") return [];
  if (named.includes(undefined)) context.addIssue({ code: "custom", message: groupProblem });
  return usageGroups.filter((group) => named.includes(group));
});

/** The range of every query. */
export const range = { from: timeSchema.optional(), to: timeSchema.optional() };

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
  group_by: groupSchema.default([]),
});
const activitySchema = z.object({ ...range, time_zone: zoneField });

const documentedZone = z
  .string()
  .optional()
  .describe(
    "Time zone whose days are counted, such as Europe/Berlin; UTC unless it is given. At most 31 days at a time. " +
      "An hour that midnight cuts counts for the day in which it begins.",
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
      .describe("model, key and provider; several with commas between them."),
    time_zone: documentedZone,
  }),
  activity: z.object({
    from: z.string().optional(),
    to: z.string().optional(),
    time_zone: documentedZone,
  }),
};

/** A range of wall times in milliseconds; the end is exclusive. */
export interface TimeRange {
  fromMs: number;
  toMs: number;
}

/** The range that is asked for, within its bounds; throws `bad_request`. */
export function rangeOf(
  given: { from?: number | undefined; to?: number | undefined },
  { nowMs, daysDefault, daysMax }: { nowMs: number; daysDefault: number; daysMax: number },
): TimeRange {
  const toMs = given.to ?? Math.max(nowMs, (given.from ?? 0) + 1);
  const fromMs = given.from ?? Math.max(0, toMs - daysDefault * dayMs);
  if (fromMs >= toMs)
    throw new GatewayError("bad_request", "from: must be before to.", { param: "from" });
  if (toMs - fromMs > daysMax * dayMs) {
    throw new GatewayError("bad_request", `from: must be at most ${daysMax} days before to.`, {
      param: "from",
    });
  }
  return { fromMs, toMs };
}

/**
 * The query of `GET /analytics/usage`; throws `bad_request` with the parameter that cannot be read.
 */
export function readUsageQuery(parameters: URLSearchParams, nowMs: number) {
  const {
    from,
    to,
    interval,
    group_by: groupBy,
    time_zone: timeZone,
  } = checkBody(usageSchema, Object.fromEntries(parameters));
  // Hours are the same in every zone; days of another one are added up from hours.
  const daysMax = rangeDaysMax[timeZone === undefined ? interval : "hour"];
  return {
    interval,
    groupBy,
    timeZone: interval === "day" ? timeZone : undefined,
    ...rangeOf({ from, to }, { nowMs, daysDefault: rangeDaysDefault, daysMax }),
  };
}

/** The query of `GET /analytics/activity`; throws as above. */
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
