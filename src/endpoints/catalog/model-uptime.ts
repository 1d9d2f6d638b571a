import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { uptimeDays } from "../../inference/catalog/route-history.ts";
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
import { uptimeFields, uptimeOf, uptimeShare } from "../insights/health.ts";

const response = lazily(() =>
  z.object({
    object: z.literal("model.uptime"),
    model: z.string(),
    days: z.int(),
    data: z.array(z.object({ provider: z.string(), ...uptimeFields() })),
  }),
);

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
    data: [...history].map(([provider, days]) => ({ provider, ...uptimeOf(days) })),
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
          .map((line) => ({ ...line, uptime: uptimeShare(line.attempts, line.failures) })),
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
