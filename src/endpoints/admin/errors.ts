import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import type { Dependencies } from "../dependencies.ts";
import { daysQuery, dayText, forOperators, lastDays } from "./admin-fields.ts";

const shown = 100;

interface Line {
  id: string;
  requests: number;
  errors: number;
}

const lineSchema = lazily(() => z.object({ id: z.string(), requests: z.int(), errors: z.int() }));
const triedSchema = lazily(() => lineSchema().extend({ attempts: z.int(), failures: z.int() }));

/** Returns the lines with failures, most failures first. */
const worst = <Each extends Line & { failures?: number }>(lines: readonly Each[]): Each[] =>
  lines
    .filter(({ errors, failures = 0 }) => errors + failures > 0)
    .sort((one, other) => other.errors - one.errors || (other.failures ?? 0) - (one.failures ?? 0))
    .slice(0, shown);

const rangeQuery = daysQuery(1);

export const errorsOverview = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/errors",
  summary: "Show failures by provider, model and workspace (operators).",
  description:
    "Covers the last `days` days (UTC), today included, most failures first. errors counts requests without a complete " +
    "answer. failures counts attempts that failed through the provider's own fault, even if another provider then " +
    "served the request. upstreams lists providers that are unhealthy now.",
  query: rangeQuery,
  response: () =>
    z.object({
      object: z.literal("errors_overview"),
      from: z.string(),
      to: z.string(),
      requests: z.int(),
      errors: z.int(),
      error_rate: z.number(),
      providers: z.array(triedSchema()),
      models: z.array(triedSchema()),
      workspaces: z.array(lineSchema()),
      upstreams: z.array(
        z.object({
          id: z.string(),
          states: z.array(z.string()),
          failures_in_row: z.int(),
          last_failure_at: z.string().nullable(),
        }),
      ),
    }),
  async handle(
    context,
    { insights: { service, health }, clock }: Pick<Dependencies, "insights" | "clock">,
  ) {
    const { days } = checkBody(rangeQuery, Object.fromEntries(context.query));
    const range = lastDays(days, clock.nowMs());
    const [providers, models, workspaces] = await Promise.all([
      service.sumsBy("provider", range),
      service.sumsBy("model", range),
      service.workspaces(range),
    ]);
    const requests = workspaces.reduce((sum, each) => sum + each.requests, 0);
    const errors = workspaces.reduce((sum, each) => sum + each.errors, 0);
    const tried = <Each extends Omit<AnswerOf<typeof triedSchema>, "id">>(
      id: string,
      each: Each,
    ): AnswerOf<typeof triedSchema> => ({
      id,
      requests: each.requests,
      errors: each.errors,
      attempts: each.attempts,
      failures: each.failures,
    });
    return context.json({
      object: "errors_overview",
      from: dayText(range.fromDay),
      to: dayText(range.toDay - 1),
      requests,
      errors,
      error_rate: requests === 0 ? 0 : errors / requests,
      providers: worst(providers.map((each) => tried(each.provider, each))),
      models: worst(models.map((each) => tried(each.model, each))),
      workspaces: worst(
        workspaces.map((each) => ({
          id: each.workspaceId,
          requests: each.requests,
          errors: each.errors,
        })),
      ),
      upstreams: health
        .upstreams()
        .filter(({ states }) => states.length > 0)
        .map((each) => ({
          id: each.id,
          states: [...each.states],
          failures_in_row: each.failuresInRow,
          last_failure_at: isoOrNull(each.lastFailureMs ?? null),
        })),
    });
  },
});
