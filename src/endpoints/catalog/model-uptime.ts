import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { uptimeDays, type UptimeDay } from "../../inference/catalog/route-history.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelByEncodedId } from "./models.ts";
import {
  catalogEndpoint,
  isListedFor,
  modelsToList,
  routesOf,
  subRoute,
  type Telling,
} from "./sub-route.ts";

const response = lazily(() =>
  z.object({
    object: z.literal("model.uptime"),
    model: z.string(),
    days: z.int(),
    data: z.array(
      z.object({
        provider: z.string(),
        uptime: z.number().nullable(),
        buckets: z.array(
          z.object({
            date: z.iso.date(),
            attempts: z.int(),
            failures: z.int(),
            uptime: z.number().nullable(),
          }),
        ),
      }),
    ),
  }),
);

/**
 * Returns the share of attempts at which the provider was available, with four decimals; null
 * without attempts.
 */
const uptimeOf = ({
  attempts,
  failures,
}: Pick<UptimeDay, "attempts" | "failures">): number | null =>
  attempts === 0 ? null : Math.round((1 - failures / attempts) * 10_000) / 10_000;

function providerUptime(provider: string, days: readonly UptimeDay[]): object {
  const total = { attempts: 0, failures: 0 };
  for (const { attempts, failures } of days) {
    total.attempts += attempts;
    total.failures += failures;
  }
  return {
    provider,
    uptime: uptimeOf(total),
    buckets: days.map(({ day, attempts, failures }) => ({
      date: new Date(day * dayMs).toISOString().slice(0, 10),
      attempts,
      failures,
      uptime: uptimeOf({ attempts, failures }),
    })),
  };
}

const uptime: Telling = async (model, { routeHistory }) => {
  const routes = routesOf(model);
  const history = await routeHistory.uptime({
    models: [...new Set(routes.map((each) => each.model.id))],
    providers: [...new Set(routes.map(({ route }) => route.provider.id))],
  });
  return {
    object: "model.uptime",
    model: model.id,
    days: uptimeDays,
    data: [...history].map(([provider, days]) => providerUptime(provider, days)),
  };
};

const shared = {
  ...catalogEndpoint,
  description:
    "Attempts at each provider by day (UTC) over 90 days, oldest first, and the number that failed through the " +
    "provider's own fault. A routing preset shows all its members. Null without attempts.",
  response,
};

/** The routes for the uptime of one model, by both forms of its path, and of all models. */
export const uptimeRoutes = [
  // Lists the uptime of all models' providers.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory">>({
    ...catalogEndpoint,
    path: "/models/uptime",
    summary: "Show the uptime of the providers of all models.",
    description:
      "Returns, over 90 days, the attempts at each provider of the models that the caller can use, and the share that " +
      "the provider answered. Models without attempts are omitted. GET /models/{owner}/{model}/uptime has the single " +
      "days.",
    response: () =>
      z.object({
        object: z.literal("list"),
        days: z.int().describe("Number of days, today included."),
        data: z.array(
          z.object({
            model: z.string().describe("Id of the model."),
            provider: z.string().describe("Id of the provider."),
            attempts: z.int().describe("Number of attempts at the provider."),
            failures: z
              .int()
              .describe("Number of attempts that failed through the provider's own fault."),
            uptime: z
              .number()
              .nullable()
              .describe("Share of the attempts that the provider answered, 0 to 1."),
          }),
        ),
      }),
    async handle(context, deps) {
      const isListed = isListedFor(deps, context.caller);
      const listed = new Set(
        [...modelsToList(deps, context.caller)].filter(isListed).map(({ id }) => id),
      );
      const lines = await deps.routeHistory.attempts();
      return context.json({
        object: "list",
        days: uptimeDays,
        data: lines
          .filter(({ model, attempts }) => attempts > 0 && listed.has(model))
          .map((line) => ({ ...line, uptime: uptimeOf(line) })),
      });
    },
  }),
  // Returns the uptime of a model's providers.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:owner/:model/uptime",
    summary: "Show the uptime of a model's providers.",
    handle: subRoute(uptime),
  }),
  // The same by a percent-encoded slug.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:id/uptime",
    summary: "Show the uptime of a model's providers (percent-encoded id).",
    handle: subRoute(uptime, modelByEncodedId("uptime")),
  }),
];
