import { z } from "zod";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { intervals, type UsageLine, type UsageQuery } from "../../insights/usage-store.ts";
import {
  byZonedDay,
  hoursWithin,
  zonedDate,
  zonedRange,
  analyticsQueries,
  readActivityQuery,
  readUsageQuery,
} from "./analytics-query.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";

const shared = {
  method: "GET" as const,
  base: "api" as const,
  access: { managementScope: "read:analytics" as const, session: true as const },
  counting: "at-door" as const,
  tag: "Insights",
  encodeError: encodeContractError,
};

const sumsSchema = lazily(() =>
  z.looseObject({
    requests: z.int(),
    errors: z.int(),
    tokens: z.int(),
    cost: z.number(),
  }),
);

const workspaceOf = ({ caller }: RequestContext<undefined, AccountCaller>): string =>
  caller.workspace.id;

/** Returns the sums of a line; undefined members are not written. */
const sumsObject = (line: UsageLine): Record<string, unknown> => ({
  model: line.model,
  key_id: line.key_id,
  // Empty where no provider was called.
  provider: line.provider === "" ? null : line.provider,
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
  const message =
    "from: this range holds too much for one answer. Ask for fewer days at a time, or group by less.";
  throw new GatewayError("bad_request", message, { param: "from" });
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

/**
 * Returns requests, tokens and cost of the workspace by hour or day and, where grouped, by model,
 * key and provider.
 */
export const usageAnalytics = defineEndpoint({
  ...shared,
  path: "/analytics/usage",
  summary: "Show the usage of the workspace over time.",
  query: analyticsQueries.usage,
  response: () =>
    z.object({
      object: z.literal("list"),
      from: z.string(),
      to: z.string(),
      interval: z.enum(["hour", "day"]),
      time_zone: z.string().describe("Time zone of the buckets."),
      data: z.array(sumsSchema().extend({ bucket: z.string() })),
    }),
  async handle(context, deps: Pick<Dependencies, "insights" | "clock">) {
    const query = readUsageQuery(context.query, deps.clock.nowMs());
    const lines = await sumsOf(deps, { ...query, workspaceId: workspaceOf(context) });
    return context.json({
      object: "list",
      ...bucketsOf(query),
      interval: query.interval,
      time_zone: query.timeZone ?? "UTC",
      data: lines.map((line) => ({ bucket: isoText(line.startMs), ...sumsObject(line) })),
    });
  },
});

/** Returns each key's usage of each model, by day. */
export const activityAnalytics = defineEndpoint({
  ...shared,
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
