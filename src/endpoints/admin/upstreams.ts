import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { UpstreamReport } from "../../insights/health/health-monitor.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators } from "./admin-fields.ts";

const upstreamSchema = lazily(() =>
  z.object({
    id: z.string(),
    object: z.literal("upstream"),
    name: z.string(),
    routed: z.boolean(),
    states: z.array(z.string()),
    quarantined_until: z.string().nullable(),
    failures_in_row: z.int(),
    last_success_at: z.string().nullable(),
    last_failure_at: z.string().nullable(),
    last_hour: z.object({
      requests: z.int(),
      errors: z.int(),
      latency_ms: z.number().nullable(),
      prompt_tokens: z.int(),
      cached_tokens: z.int(),
    }),
    budget: z.object({ limit: z.number(), spent: z.number() }).nullable(),
    smoke_test: z
      .object({
        at: z.string(),
        outcome: z.string(),
        latency_ms: z.number().nullable(),
        message: z.string().nullable(),
      })
      .nullable(),
  }),
);

const nothing = {
  requests: 0,
  errors: 0,
  latencyMs: 0,
  timed: 0,
  promptTokens: 0,
  cachedTokens: 0,
};

function upstreamObject(report: UpstreamReport): AnswerOf<typeof upstreamSchema> {
  const { budget, smoke, lastHour = nothing } = report;
  return {
    id: report.id,
    object: "upstream",
    name: report.name,
    routed: report.routed,
    states: [...report.states],
    quarantined_until: isoOrNull(report.quarantine?.untilMs ?? null),
    failures_in_row: report.failuresInRow,
    last_success_at: isoOrNull(report.lastSuccessMs ?? null),
    last_failure_at: isoOrNull(report.lastFailureMs ?? null),
    last_hour: {
      requests: lastHour.requests,
      errors: lastHour.errors,
      prompt_tokens: lastHour.promptTokens,
      cached_tokens: lastHour.cachedTokens,
      latency_ms: lastHour.timed === 0 ? null : Math.round(lastHour.latencyMs / lastHour.timed),
    },
    budget:
      budget === undefined
        ? null
        : { limit: usdFromNano(budget.limitNano), spent: usdFromNano(budget.spentNano) },
    smoke_test:
      smoke === undefined
        ? null
        : {
            at: new Date(smoke.atMs).toISOString(),
            outcome: smoke.outcome,
            latency_ms: smoke.latencyMs,
            message: smoke.message,
          },
  };
}

/** Lists what is known of every provider. */
export const listUpstreams = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/upstreams",
  summary: "Show the health of every provider (operators).",
  description:
    "Returns each provider's states, quarantine, last hour, daily budget, and last smoke test with the provider's " +
    "answer.",
  response: () => z.object({ object: z.literal("list"), data: z.array(upstreamSchema()) }),
  handle: (context, { insights }: Pick<Dependencies, "insights">) =>
    context.json({ object: "list", data: insights.health.upstreams().map(upstreamObject) }),
});

export const clearUpstream = defineEndpoint({
  ...forOperators,
  method: "POST",
  path: "/admin/upstreams/:id/clear",
  idempotent: true,
  summary: "Reset the failure state of a provider (operators).",
  description:
    "Ends the provider's quarantine and exclusion, so that requests are routed to it again.",
  response: upstreamSchema,
  handle(context, { insights: { health } }: Pick<Dependencies, "insights">) {
    const id = context.param("id");
    const known = (): UpstreamReport | undefined =>
      health.upstreams().find((each) => each.id === id);
    if (known() === undefined)
      throw new GatewayError(
        "not_found",
        "There is no such provider. GET /admin/upstreams lists them.",
      );
    health.clear(id);
    const cleared = known();
    if (cleared === undefined)
      throw new GatewayError("not_found", "This provider has no failures or status to clear.");
    return context.json(upstreamObject(cleared));
  },
});
