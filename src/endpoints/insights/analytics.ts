import { z } from "zod";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { RecordUsage, RecordUsageQuery } from "../../insights/usage/record-usage-store.ts";
import { intervals, type UsageLine, type UsageQuery } from "../../insights/usage/usage-store.ts";
import {
  byZonedDay,
  hoursWithin,
  zonedDate,
  zonedRange,
  analyticsQueries,
  readActivityQuery,
  readUsageQuery,
  forAnalytics,
} from "./analytics-query.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";

const sumsSchema = lazily(() =>
  z.object({
    requests: z.int(),
    errors: z.int(),
    tokens: z.int(),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    cached_tokens: z.int(),
    reasoning_tokens: z.int(),
    cost: z.number(),
  }),
);

/** The fields that name the group of a line, each present where `group_by` asks for it. */
const groupFields = () => ({
  model: z.string().optional().describe("The model, where grouped by model."),
  key_id: z.string().optional().describe("Id of the key, where grouped by key."),
  provider: z
    .string()
    .nullish()
    .describe("The provider, where grouped by provider; null where none was called."),
  team_id: z
    .string()
    .nullish()
    .describe("Id of the team, where grouped by team; null where the key has none."),
  app: z.string().nullish().describe("The app, where grouped by app; null where none was named."),
  customer: z
    .string()
    .nullish()
    .describe("The customer, where grouped by customer; null where none was named."),
  preset_id: z
    .string()
    .nullish()
    .describe("Id of the preset, where grouped by preset; null where none was used."),
  session_id: z
    .string()
    .nullish()
    .describe("The session, where grouped by session; null where none was named."),
  tag: z
    .string()
    .nullish()
    .describe("The value of the tag, where grouped by a tag; null where requests have none."),
});

const workspaceOf = ({ caller }: RequestContext<undefined, AccountCaller>): string =>
  caller.workspace.id;

/** Returns the sums of a line; undefined members are not written. */
const sumsObject = (line: UsageLine) => ({
  model: line.model,
  key_id: line.key_id,
  // Empty where no provider was called.
  provider: line.provider === "" ? null : line.provider,
  // Empty where the request named none, or its key has none.
  team_id: line.team_id === "" ? null : line.team_id,
  app: line.app === "" ? null : line.app,
  customer: line.customer === "" ? null : line.customer,
  preset_id: line.preset_id === "" ? null : line.preset_id,
  session_id: line.session_id === "" ? null : line.session_id,
  tag: line.tag === "" ? null : line.tag,
  requests: line.requests,
  errors: line.errors,
  tokens: line.prompt_tokens + line.completion_tokens,
  prompt_tokens: line.prompt_tokens,
  completion_tokens: line.completion_tokens,
  cached_tokens: line.cached_tokens,
  reasoning_tokens: line.reasoning_tokens,
  cost: usdFromNano(line.costNanoUsd),
});

/** The query of sums, by the days of a time zone where one is named. */
type ZonedQuery = UsageQuery & { timeZone: string | undefined };

const tooMuch = (): GatewayError => {
  const message =
    "from: this range holds too much for one answer. Ask for fewer days at a time, or group by less.";
  return new GatewayError("bad_request", message, { param: "from" });
};

/** Sums of records, by the days of a time zone where one is named. */
async function recordSumsOf(
  { insights }: Pick<Dependencies, "insights">,
  { timeZone, ...query }: RecordUsageQuery & { timeZone: string | undefined },
): Promise<RecordUsage> {
  const hours = timeZone === undefined ? undefined : hoursWithin(zonedRange(timeZone, query));
  const sums = await insights.recordUsage.sums(
    hours === undefined ? query : { ...query, ...hours, interval: "hour" },
  );
  if (sums === undefined) throw tooMuch();
  return timeZone === undefined ? sums : { ...sums, lines: byZonedDay(sums.lines, timeZone) };
}

async function sumsOf(
  { insights }: Pick<Dependencies, "insights">,
  { timeZone, ...query }: ZonedQuery,
): Promise<UsageLine[]> {
  if (timeZone !== undefined) {
    const hours = hoursWithin(zonedRange(timeZone, query));
    const lines = await insights.usage.sums({ ...query, ...hours, interval: "hour" });
    if (lines !== undefined) return byZonedDay(lines, timeZone);
  } else {
    const lines = await insights.usage.sums(query);
    if (lines !== undefined) return lines;
  }
  throw tooMuch();
}

/** Returns the whole buckets that a range overlaps, as ISO texts. */
function bucketsOf({
  fromMs,
  toMs,
  interval,
  timeZone,
}: Pick<ZonedQuery, "fromMs" | "toMs" | "interval" | "timeZone">) {
  if (timeZone !== undefined) {
    const days = zonedRange(timeZone, { fromMs, toMs });
    return { from: isoText(days.fromMs), to: isoText(days.toMs) };
  }
  const lengthMs = intervals[interval];
  return {
    from: isoText(Math.floor(fromMs / lengthMs) * lengthMs),
    to: isoText(Math.ceil(toMs / lengthMs) * lengthMs),
  };
}

const isoText = (atMs: number): string => new Date(atMs).toISOString();

/** The usage of a workspace over time. */
export const usageSchema = lazily(() =>
  z.object({
    object: z.literal("list"),
    from: z.string(),
    to: z.string(),
    interval: z.enum(["hour", "day"]),
    time_zone: z.string().describe("Time zone of the buckets."),
    counted_from: z
      .string()
      .nullable()
      .describe(
        "Where the counted records begin, if the range has more than may be read at a time; otherwise null.",
      ),
    data: z.array(
      sumsSchema().extend({
        bucket: z.string().describe("The moment at which the hour or day begins."),
        ...groupFields(),
      }),
    ),
  }),
);

/** Reads the usage of a workspace as its query has it. */
export async function usageOf(
  query: ReturnType<typeof readUsageQuery>,
  deps: Pick<Dependencies, "insights">,
  workspaceId: string,
): Promise<RecordUsage> {
  const { ofRecords, ...range } = query;
  return ofRecords === undefined
    ? { lines: await sumsOf(deps, { ...range, workspaceId }), countedFromMs: undefined }
    : recordSumsOf(deps, { ...range, ...ofRecords, workspaceId });
}

/** Returns the answer that has these sums. */
export const usageObject = (
  query: ReturnType<typeof readUsageQuery>,
  { lines, countedFromMs }: RecordUsage,
): AnswerOf<typeof usageSchema> => ({
  object: "list",
  ...bucketsOf(query),
  interval: query.interval,
  time_zone: query.timeZone ?? "UTC",
  counted_from: countedFromMs === undefined ? null : isoText(countedFromMs),
  data: lines.map((line) => ({ bucket: isoText(line.startMs), ...sumsObject(line) })),
});

/**
 * Returns requests, tokens and cost of the workspace by hour or day and, where grouped, by model,
 * key and provider, or by what requests say of their app, customer, preset, session and tags.
 */
export const usageAnalytics = defineEndpoint({
  ...forAnalytics,
  path: "/analytics/usage",
  summary: "Show the usage of the workspace over time.",
  query: analyticsQueries.usage,
  response: usageSchema,
  async handle(context, deps: Pick<Dependencies, "insights" | "clock">) {
    const query = readUsageQuery(context.query, deps.clock.nowMs());
    return context.json(usageObject(query, await usageOf(query, deps, workspaceOf(context))));
  },
});

export const activityAnalytics = defineEndpoint({
  ...forAnalytics,
  path: "/analytics/activity",
  summary: "Show the daily usage of the workspace by model and key.",
  query: analyticsQueries.activity,
  response: () =>
    z.object({
      object: z.literal("list"),
      from: z.string(),
      to: z.string(),
      data: z.array(
        sumsSchema().extend({ date: z.string(), model: z.string(), key_id: z.string() }),
      ),
    }),
  async handle(context, deps: Pick<Dependencies, "insights" | "clock">) {
    const query = {
      ...readActivityQuery(context.query, deps.clock.nowMs()),
      interval: "day" as const,
    };
    const lines = await sumsOf(deps, {
      ...query,
      workspaceId: workspaceOf(context),
      groupBy: ["model", "key_id"],
    });
    return context.json({
      object: "list",
      ...bucketsOf(query),
      data: lines.map((line) => ({
        date:
          query.timeZone === undefined
            ? isoText(line.startMs).slice(0, 10)
            : zonedDate(query.timeZone, line.startMs),
        ...sumsObject(line),
      })),
    });
  },
});
