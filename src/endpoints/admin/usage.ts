import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type {
  DayRange,
  ServiceSums,
  UncollectedSums,
} from "../../insights/usage/service-usage-store.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies, GatewayNode } from "../dependencies.ts";
import { daysQuery, dayText, forOperators, lastDays } from "./admin-fields.ts";

const groups = ["day", "model", "provider", "workspace"] as const;
const rangeQuery = daysQuery(30);
const querySchema = rangeQuery.extend({
  group_by: z.enum(groups, `must be one of ${groups.join(", ")}`).default("day"),
});

const sumsSchema = lazily(() =>
  z.object({
    requests: z.int(),
    errors: z.int(),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    cost: z.number(),
    attempts: z.int(),
    failures: z.int(),
  }),
);

const sumsObject = (sums: ServiceSums): AnswerOf<typeof sumsSchema> => ({
  requests: sums.requests,
  errors: sums.errors,
  prompt_tokens: sums.promptTokens,
  completion_tokens: sums.completionTokens,
  cost: usdFromNano(sums.costNanoUsd),
  attempts: sums.attempts,
  failures: sums.failures,
});

const none: ServiceSums = {
  requests: 0,
  errors: 0,
  promptTokens: 0,
  completionTokens: 0,
  costNanoUsd: 0n,
  attempts: 0,
  failures: 0,
};

const added = (one: ServiceSums, other: ServiceSums): ServiceSums => ({
  requests: one.requests + other.requests,
  errors: one.errors + other.errors,
  promptTokens: one.promptTokens + other.promptTokens,
  completionTokens: one.completionTokens + other.completionTokens,
  costNanoUsd: one.costNanoUsd + other.costNanoUsd,
  attempts: one.attempts + other.attempts,
  failures: one.failures + other.failures,
});

async function linesOf(
  { insights: { service } }: Pick<Dependencies, "insights">,
  group: (typeof groups)[number],
  range: DayRange,
) {
  switch (group) {
    case "day":
      return (await service.sumsBy("day", range)).map(({ day, ...sums }) => ({
        id: dayText(day),
        ...sumsObject(sums),
      }));
    case "model":
      return (await service.sumsBy("model", range)).map(({ model, ...sums }) => ({
        id: model,
        ...sumsObject(sums),
      }));
    case "provider":
      return (await service.sumsBy("provider", range)).map(({ provider, ...sums }) => ({
        id: provider,
        ...sumsObject(sums),
      }));
    case "workspace":
      return (await service.workspaces(range)).map(
        ({ workspaceId, requests, errors, costNanoUsd }) => ({
          id: workspaceId,
          requests,
          errors,
          cost: usdFromNano(costNanoUsd),
        }),
      );
  }
}

export const serviceUsage = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/usage",
  summary: "Show the usage of the whole service (operators).",
  description:
    "Covers the last `days` days (UTC), today included, by day, model, provider or workspace. attempts and failures are " +
    "those of providers.",
  query: querySchema,
  response: () =>
    z.object({
      object: z.literal("service_usage"),
      from: z.string(),
      to: z.string(),
      group_by: z.string(),
      data: z.array(
        sumsSchema()
          .partial({ prompt_tokens: true, completion_tokens: true, attempts: true, failures: true })
          .extend({
            id: z.string(),
          }),
      ),
    }),
  async handle(context, deps: Pick<Dependencies, "insights" | "clock">) {
    const { days, group_by: group } = checkBody(querySchema, Object.fromEntries(context.query));
    const range = lastDays(days, deps.clock.nowMs());
    const data = await linesOf(deps, group, range);
    return context.json({
      object: "service_usage",
      from: dayText(range.fromDay),
      to: dayText(range.toDay - 1),
      group_by: group,
      data,
    });
  },
});

const uncollectedShown = 100;

/** Returns the total of what could not be charged, and the largest amounts. */
const uncollectedObject = (lines: readonly UncollectedSums[]) => ({
  requests: lines.reduce((sum, { requests }) => sum + requests, 0),
  cost: usdFromNano(lines.reduce((sum, { uncollectedNano }) => sum + uncollectedNano, 0n)),
  data: lines
    .slice(0, uncollectedShown)
    .map(({ workspaceId, model, requests, uncollectedNano }) => ({
      workspace_id: workspaceId,
      model,
      requests,
      cost: usdFromNano(uncollectedNano),
    })),
});

const gatewaySchema = lazily(() =>
  z.object({
    id: z.string(),
    name: z.string(),
    version: z.string(),
    started_at: z.string(),
    configuration: z.string(),
    needs_restart: z.array(z.string()),
    problem: z.string().nullable(),
  }),
);

/** Returns the gateways on the database, and whether their configurations agree. */
const gatewaysObject = (nodes: readonly GatewayNode[]) => ({
  alike: new Set(nodes.map(({ configuration }) => configuration)).size <= 1,
  data: nodes.map(
    (node): AnswerOf<typeof gatewaySchema> => ({
      id: node.id,
      name: node.name,
      version: node.version,
      started_at: node.startedAt,
      configuration: node.configuration,
      needs_restart: [...node.needsRestart],
      problem: node.problem,
    }),
  ),
});

export const overview = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/overview",
  summary: "Show an overview of the service (operators).",
  description:
    "usage and uncollected cover the last `days` days (UTC); today covers the current day so far. uncollected is usage " +
    "that was delivered but could not be charged, because it exceeded the balance or the database refused it. Its " +
    "largest sums are listed by workspace and model. passed_caps lists the providers that generated more than the output " +
    "cap that they were sent, in the same days, with the tokens past the cap and their price. A stream is cut there.",
  query: rangeQuery,
  response: () =>
    z.object({
      object: z.literal("overview"),
      version: z.string(),
      status: z.string(),
      users: z.object({ total: z.int(), operators: z.int(), blocked: z.int() }),
      workspaces: z.object({ total: z.int(), organizations: z.int(), blocked: z.int() }),
      upstreams: z.object({ routed: z.int(), in_trouble: z.int() }),
      gateways: z.object({ alike: z.boolean(), data: z.array(gatewaySchema()) }),
      days: z.int(),
      usage: sumsSchema(),
      today: sumsSchema(),
      uncollected: z.object({
        requests: z.int(),
        cost: z.number(),
        data: z.array(
          z.object({
            workspace_id: z.string(),
            model: z.string(),
            requests: z.int(),
            cost: z.number(),
          }),
        ),
      }),
      passed_caps: z.array(
        z.object({
          provider: z.string(),
          requests: z.int(),
          tokens: z.int(),
          cost: z.number(),
        }),
      ),
    }),
  async handle(
    context,
    deps: Pick<Dependencies, "clock" | "directory" | "insights" | "operations" | "people">,
  ) {
    const { days } = checkBody(rangeQuery, Object.fromEntries(context.query));
    const { people, directory, insights, clock, operations } = deps;
    const range = lastDays(days, clock.nowMs());
    const [nodes, users, lines, lost, passed] = await Promise.all([
      operations.nodes.list(),
      people.users.counts(),
      insights.service.sumsBy("day", range),
      insights.service.uncollected(range),
      insights.service.passedCaps(range),
    ]);
    const workspaces = directory.allWorkspaces();
    const upstreams = insights.health.upstreams().filter(({ routed }) => routed);
    return context.json({
      object: "overview",
      version: operations.version,
      status: insights.health.snapshot().status,
      users,
      workspaces: {
        total: workspaces.length,
        organizations: workspaces.filter(({ organizationId }) => organizationId !== undefined)
          .length,
        blocked: workspaces.filter(({ blocked }) => blocked).length,
      },
      upstreams: {
        routed: upstreams.length,
        in_trouble: upstreams.filter(({ states }) => states.length > 0).length,
      },
      gateways: gatewaysObject(nodes),
      days,
      usage: sumsObject(lines.reduce<ServiceSums>(added, none)),
      today: sumsObject(
        lines.filter(({ day }) => day === range.toDay - 1).reduce<ServiceSums>(added, none),
      ),
      uncollected: uncollectedObject(lost),
      passed_caps: passed.map(({ provider, requests, tokens, costNanoUsd }) => ({
        provider,
        requests,
        tokens,
        cost: usdFromNano(costNanoUsd),
      })),
    });
  },
});

const figuresSchema = lazily(() =>
  z.object({
    active_workspaces: z.int(),
    active_keys: z.int(),
    new_workspaces: z.int(),
    requests: z.int(),
    success_rate: z.number().nullable(),
    tokens: z.int(),
    cost: z.number(),
  }),
);

async function figuresOf(
  range: DayRange,
  { insights: { service }, directory }: Pick<Dependencies, "directory" | "insights">,
): Promise<AnswerOf<typeof figuresSchema>> {
  const [active, lines, workspaces] = await Promise.all([
    service.active(range),
    service.sumsBy("day", range),
    service.workspaces(range),
  ]);
  const requests = workspaces.reduce((sum, each) => sum + each.requests, 0);
  const errors = workspaces.reduce((sum, each) => sum + each.errors, 0);
  const { fromDay, toDay } = range;
  return {
    active_workspaces: active.workspaces,
    active_keys: active.keys,
    new_workspaces: directory
      .allWorkspaces()
      .filter(({ createdAtMs }) => createdAtMs >= fromDay * dayMs && createdAtMs < toDay * dayMs)
      .length,
    requests,
    success_rate: requests === 0 ? null : (requests - errors) / requests,
    tokens: lines.reduce((sum, each) => sum + each.promptTokens + each.completionTokens, 0),
    cost: usdFromNano(workspaces.reduce((sum, each) => sum + each.costNanoUsd, 0n)),
  };
}

/** Returns whether the service's usage is growing. */
export const northStar = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/north-star",
  summary: "Show the growth of the service (operators).",
  description:
    "Returns, for the last `days` days (UTC), today included: the workspaces and keys that made requests, the number of " +
    "complete answers, and what was used and spent. before has the same figures for the preceding period of equal " +
    "length.",
  query: rangeQuery,
  response: () =>
    figuresSchema().extend({
      object: z.literal("north_star"),
      from: z.string(),
      to: z.string(),
      days: z.int(),
      before: figuresSchema(),
    }),
  async handle(context, deps: Pick<Dependencies, "directory" | "insights" | "clock">) {
    const { days } = checkBody(rangeQuery, Object.fromEntries(context.query));
    const range = lastDays(days, deps.clock.nowMs());
    const [figures, before] = await Promise.all([
      figuresOf(range, deps),
      figuresOf({ fromDay: range.fromDay - days, toDay: range.fromDay }, deps),
    ]);
    return context.json({
      object: "north_star",
      from: dayText(range.fromDay),
      to: dayText(range.toDay - 1),
      days,
      ...figures,
      before,
    });
  },
});
