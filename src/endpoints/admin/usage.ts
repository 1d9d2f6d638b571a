import { z } from "zod";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { DayRange, ServiceSums } from "../../insights/service-usage-store.ts";
import { dayMs } from "../../platform/lib/clock.ts";
import { usdFromNano } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators } from "./admin-fields.ts";

const daysMax = 366;
const daysProblem = `must be a whole number from 1 to ${daysMax}`;
const daysField = z.coerce.number(daysProblem).int(daysProblem).min(1, daysProblem).max(daysMax, daysProblem).default(30);
const groups = ["day", "model", "provider", "workspace"] as const;
const querySchema = z.object({ days: daysField, group_by: z.enum(groups, `must be one of ${groups.join(", ")}`).default("day") });

/** The last days (UTC), today included. */
function lastDays(days: number, nowMs: number): DayRange {
  const toDay = Math.floor(nowMs / dayMs) + 1;
  return { fromDay: toDay - days, toDay };
}

const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

const sumsSchema = z.object({
  requests: z.int(), errors: z.int(), prompt_tokens: z.int(), completion_tokens: z.int(), cost: z.number(), attempts: z.int(),
  failures: z.int(),
});

const sumsObject = (sums: ServiceSums): z.infer<typeof sumsSchema> => ({
  requests: sums.requests, errors: sums.errors, prompt_tokens: sums.promptTokens, completion_tokens: sums.completionTokens,
  cost: usdFromNano(sums.costNanoUsd), attempts: sums.attempts, failures: sums.failures,
});

const none: ServiceSums = {
  requests: 0, errors: 0, promptTokens: 0, completionTokens: 0, costNanoUsd: 0n, attempts: 0, failures: 0,
};

const added = (one: ServiceSums, other: ServiceSums): ServiceSums => ({
  requests: one.requests + other.requests, errors: one.errors + other.errors, promptTokens: one.promptTokens + other.promptTokens,
  completionTokens: one.completionTokens + other.completionTokens, costNanoUsd: one.costNanoUsd + other.costNanoUsd,
  attempts: one.attempts + other.attempts, failures: one.failures + other.failures,
});

async function linesOf({ insights: { service } }: Dependencies, group: (typeof groups)[number], range: DayRange) {
  switch (group) {
    case "day": return (await service.sumsBy("day", range)).map(({ day, ...sums }) => ({ id: dayText(day), ...sumsObject(sums) }));
    case "model": return (await service.sumsBy("model", range)).map(({ model, ...sums }) => ({ id: model, ...sumsObject(sums) }));
    case "provider":
      return (await service.sumsBy("provider", range)).map(({ provider, ...sums }) => ({ id: provider, ...sumsObject(sums) }));
    case "workspace":
      return (await service.workspaces(range)).map(({ workspaceId, requests, errors, costNanoUsd }) =>
        ({ id: workspaceId, requests, errors, cost: usdFromNano(costNanoUsd) }));
  }
}

/** What the whole service was used for. */
export const serviceUsage = defineEndpoint<Dependencies>({
  ...forOperators,
  method: "GET",
  path: "/admin/usage",
  summary: "Show the usage of the whole service (operators).",
  description: "The last days (UTC), today included, by day, model, provider or workspace; attempts and failures are those of providers.",
  query: z.object({ days: z.int().min(1).max(daysMax).optional(), group_by: z.enum(groups).optional() }),
  response: z.object({
    object: z.literal("service_usage"), from: z.string(), to: z.string(), group_by: z.string(),
    data: z.array(sumsSchema.partial({ prompt_tokens: true, completion_tokens: true, attempts: true, failures: true }).extend({
      id: z.string(),
    })),
  }),
  async handle(context, deps) {
    const { days, group_by: group } = checkBody(querySchema, Object.fromEntries(context.query));
    const range = lastDays(days, deps.clock.nowMs());
    const data = await linesOf(deps, group, range);
    return context.json({ object: "service_usage", from: dayText(range.fromDay), to: dayText(range.toDay - 1), group_by: group, data });
  },
});

/** The service at a glance. */
export const overview = defineEndpoint<Dependencies>({
  ...forOperators,
  method: "GET",
  path: "/admin/overview",
  summary: "Show the service at a glance (operators).",
  query: z.object({ days: z.int().min(1).max(daysMax).optional() }),
  response: z.object({
    object: z.literal("overview"), version: z.string(), status: z.string(),
    users: z.object({ total: z.int(), operators: z.int(), blocked: z.int() }),
    workspaces: z.object({ total: z.int(), organizations: z.int(), blocked: z.int() }),
    upstreams: z.object({ routed: z.int(), in_trouble: z.int() }), days: z.int(), usage: sumsSchema,
  }),
  async handle(context, deps) {
    const { days } = checkBody(z.object({ days: daysField }), Object.fromEntries(context.query));
    const { people, directory, insights, clock, operations } = deps;
    const [users, lines] = await Promise.all([people.users.counts(), insights.service.sumsBy("day", lastDays(days, clock.nowMs()))]);
    const workspaces = directory.allWorkspaces();
    const upstreams = insights.health.upstreams().filter(({ routed }) => routed);
    return context.json({
      object: "overview", version: operations.version, status: insights.health.snapshot().status, users,
      workspaces: {
        total: workspaces.length, organizations: workspaces.filter(({ organizationId }) => organizationId !== undefined).length,
        blocked: workspaces.filter(({ blocked }) => blocked).length,
      },
      upstreams: { routed: upstreams.length, in_trouble: upstreams.filter(({ states }) => states.length > 0).length },
      days, usage: sumsObject(lines.reduce<ServiceSums>(added, none)),
    });
  },
});
