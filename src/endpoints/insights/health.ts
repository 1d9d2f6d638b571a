import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { UptimeDay } from "../../inference/catalog/route-history.ts";
import { type IncidentNotice, noticeStates } from "../../insights/health/incident-notices.ts";
import { dayMs, isoOrNull } from "../../platform/kernel/clock.ts";
import { wholeNumberField } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/** Contract, "Limits": clients need not ask more often than once a minute. */
export const publicCaching = "public, max-age=60, s-maxage=300, stale-while-revalidate=600";

const statusSchema = z.enum(["healthy", "degraded", "partial", "down", "no_signal"]);
const componentSchema = lazily(() =>
  z.looseObject({
    status: statusSchema,
    description: z.string(),
    note: z.string().nullable(),
    data: z.looseObject({}),
  }),
);

/** Returns the health of the service. Always 200: outages are reported in the body. */
export const health = defineEndpoint({
  method: "GET",
  path: "/health",
  base: "api",
  access: { open: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Show the health snapshot.",
  description: "docs/health.md lists the thresholds of each state.",
  response: () =>
    z.object({
      status: statusSchema,
      description: z.string(),
      version: z.string(),
      checked_at: z.string(),
      components: z.object({
        api: componentSchema(),
        providers: componentSchema(),
        smoke_tests: componentSchema().nullable(),
        workflows: componentSchema().nullable(),
        routing: componentSchema().nullable(),
        postgres: componentSchema(),
        clickhouse: componentSchema(),
      }),
      events: z.array(
        z.object({
          at: z.string(),
          upstream_id: z.string(),
          from: z.string(),
          to: z.string(),
          message: z.string().optional(),
        }),
      ),
    }),
  encodeError: encodeContractError,
  handle(context, { insights }: Pick<Dependencies, "insights">) {
    context.headers["cache-control"] = publicCaching;
    return context.json(insights.health.snapshot());
  },
});

const daysMost = 90;

const incidentSchema = lazily(() =>
  z.object({
    upstream_id: z.string(),
    status: z.enum(["degraded", "down"]).describe("Worst state of the incident."),
    started_at: z.string(),
    ended_at: z.string().nullable().describe("When it ended; null while it continues."),
    messages: z.array(z.string()),
  }),
);

/** The schema of an incident that operators describe. */
export const noticeSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("incident"),
      title: z.string(),
      state: z.enum(noticeStates),
      started_at: z.string(),
      resolved_at: z.string().nullable(),
      updates: z
        .array(z.object({ at: z.string(), state: z.enum(noticeStates), text: z.string() }))
        .describe("What was said of it, newest first."),
    })
    .meta({ id: "Incident" }),
);

/** Returns the public record of an incident that operators describe. */
export const noticeObject = (notice: IncidentNotice): AnswerOf<typeof noticeSchema> => ({
  id: notice.id,
  object: "incident",
  title: notice.title,
  state: notice.state,
  started_at: new Date(notice.startedAtMs).toISOString(),
  resolved_at: isoOrNull(notice.resolvedAtMs),
  updates: notice.updates.map(({ atMs, state, text }) => ({
    at: new Date(atMs).toISOString(),
    state,
    text,
  })),
});

/** The uptime of a provider, as a whole and by day. */
export const uptimeFields = lazily(() => ({
  uptime: z.number().nullable(),
  buckets: z.array(
    z.object({
      date: z.iso.date(),
      attempts: z.int(),
      failures: z.int(),
      uptime: z.number().nullable(),
    }),
  ),
}));

/**
 * Returns the share of attempts at which a provider was available, with four decimals; null without
 * attempts.
 */
export const uptimeShare = (attempts: number, failures: number): number | null =>
  attempts === 0 ? null : Math.round((1 - failures / attempts) * 10_000) / 10_000;

/** Returns the uptime of a provider, as a whole and by day. */
export const uptimeOf = (days: readonly UptimeDay[]) => ({
  uptime: uptimeShare(
    days.reduce((sum, { attempts }) => sum + attempts, 0),
    days.reduce((sum, { failures }) => sum + failures, 0),
  ),
  buckets: days.map(({ day, attempts, failures }) => ({
    date: new Date(day * dayMs).toISOString().slice(0, 10),
    attempts,
    failures,
    uptime: uptimeShare(attempts, failures),
  })),
});

const historySchema = lazily(() =>
  z.object({
    object: z.literal("health.history"),
    days: z.int(),
    providers: z.array(z.object({ id: z.string(), ...uptimeFields() })),
    incidents: z.array(incidentSchema()),
    notices: z.array(noticeSchema()).describe("Incidents that operators describe by hand."),
  }),
);

/** Daily uptime and incidents, as the public endpoint and page show them. */
export type HealthHistory = AnswerOf<typeof historySchema>;

/** Returns the history of the last days. */
export async function healthHistoryOf(
  { insights, routeHistory, clock }: Pick<Dependencies, "insights" | "routeHistory" | "clock">,
  days = daysMost,
): Promise<HealthHistory> {
  const providers = await routeHistory.providers(days);
  const sinceMs = clock.nowMs() - days * dayMs;
  return {
    object: "health.history",
    days,
    providers: [...providers]
      .filter(([id]) => insights.health.isPublic(id))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, each]) => ({ id, ...uptimeOf(each) })),
    incidents: insights.health
      .incidents()
      .filter(({ endedMs }) => endedMs === undefined || endedMs >= sinceMs)
      .map((incident) => ({
        upstream_id: incident.upstreamId,
        status: incident.worst,
        started_at: new Date(incident.startedMs).toISOString(),
        ended_at: incident.endedMs === undefined ? null : new Date(incident.endedMs).toISOString(),
        messages: [...incident.messages],
      })),
    notices: (await insights.notices.since(sinceMs)).map(noticeObject),
  };
}

const querySchema = z.object({
  days: wholeNumberField([1, daysMost]).default(daysMost).describe("Number of days until today."),
});

export const healthHistory = defineEndpoint({
  method: "GET",
  path: "/health/history",
  base: "api",
  access: { open: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Show the uptime of each provider by day, and incidents.",
  description:
    "Days are UTC days, oldest first. uptime is the share of attempts that the provider answered; null without requests. Incidents " +
    "are taken from the newest 1,000 status changes.",
  query: querySchema,
  response: historySchema,
  encodeError: encodeContractError,
  async handle(context, deps: Pick<Dependencies, "insights" | "routeHistory" | "clock">) {
    const { days } = checkBody(querySchema, Object.fromEntries(context.query));
    context.headers["cache-control"] = publicCaching;
    return context.json(await healthHistoryOf(deps, days));
  },
});
