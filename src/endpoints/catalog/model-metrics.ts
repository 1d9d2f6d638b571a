import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelByEncodedId } from "./models.ts";
import {
  routeHealth,
  catalogEndpoint,
  isListedFor,
  modelsToList,
  routesOf,
  subRoute,
  type ModelRoute,
  type Telling,
} from "./sub-route.ts";

/** Seconds that the measurements cover (contract: the rolling window of percentile preferences). */
const windowSeconds = 300;

const shares = { p50: 0.5, p75: 0.75, p90: 0.9, p95: 0.95, p99: 0.99 } as const;

/** Describes percentiles; null where nothing was measured. */
export const percentilesSchema = lazily(() =>
  z
    .object({
      p50: z.number(),
      p75: z.number(),
      p90: z.number(),
      p95: z.number(),
      p99: z.number(),
    })
    .nullable(),
);

const routeSchema = lazily(() =>
  z.object({
    provider: z.string(),
    model: z.string(),
    requests: z.int(),
    error_rate: z.number().nullable(),
    latency_ms: percentilesSchema(),
    throughput_tps: percentilesSchema(),
  }),
);

const response = lazily(() =>
  z.object({
    object: z.literal("model.metrics"),
    model: z.string(),
    window_seconds: z.int(),
    data: z.array(routeSchema()),
  }),
);

/** Returns percentiles with one decimal; null where nothing was measured. */
function percentiles(at: (share: number) => number | undefined): Record<string, number> | null {
  const values = Object.entries(shares).map(([name, share]) => [name, at(share)] as const);
  if (values.some(([, value]) => value === undefined)) return null;
  return Object.fromEntries(
    values.map(([name, value]) => [name, Math.round((value ?? 0) * 10) / 10]),
  );
}

const measuresOf = ({ inference }: Pick<Dependencies, "inference">, { model, route }: ModelRoute) =>
  inference.health.measuresOf(route.provider.id, model.id);

/** Returns the milliseconds to the first token at a provider. */
export const latencyOf = (deps: Pick<Dependencies, "inference">, each: ModelRoute) =>
  percentiles((share) => measuresOf(deps, each).firstTokenMs(share));

/** Returns the tokens a second at a provider. */
export const throughputOf = (deps: Pick<Dependencies, "inference">, each: ModelRoute) =>
  percentiles((share) => measuresOf(deps, each).tokensPerSecond(share));

function routeMetrics(deps: Pick<Dependencies, "inference">, each: ModelRoute) {
  const { requests, error_rate } = routeHealth(deps.inference.health, each);
  return {
    provider: each.route.provider.id,
    model: each.model.id,
    requests,
    error_rate,
    latency_ms: latencyOf(deps, each),
    throughput_tps: throughputOf(deps, each),
  };
}

const metrics: Telling = async (model, deps) => ({
  object: "model.metrics",
  model: model.id,
  window_seconds: windowSeconds,
  data: routesOf(model).map((each) => routeMetrics(deps, each)),
});

const shared = {
  ...catalogEndpoint,
  description:
    "Percentiles over the last five minutes at each provider. For latency, the time to the first token in milliseconds " +
    "that the given share of answers stayed within; for throughput, the tokens per second that the given share reached. " +
    "Null without traffic.",
  response,
};

/** The routes for measurements of one model, by both forms of its path, and of all models. */
export const metricsRoutes = [
  // Lists how models are used and how fast they answer.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory">>({
    ...catalogEndpoint,
    path: "/models/metrics",
    summary: "Show usage, latency and throughput of all models.",
    description:
      "Returns the models with traffic that the caller can use, most used first: their requests in the last seven days " +
      "with their rank, and the measures of the last five minutes at each provider, as in GET " +
      "/models/{owner}/{model}/metrics.",
    response: () =>
      z.object({
        object: z.literal("list"),
        window_seconds: z.int().describe("Length of the measured window in seconds."),
        data: z.array(
          z.object({
            model: z.string().describe("Id of the model."),
            weekly_requests: z
              .int()
              .describe("Requests that the model served in the last seven days."),
            weekly_rank: z
              .int()
              .nullable()
              .describe("Rank in this list by these requests; null without any."),
            providers: z
              .array(routeSchema())
              .describe("Providers of the model with requests in the window."),
          }),
        ),
      }),
    async handle(context, deps) {
      const weekly = await deps.routeHistory.weeklyRequests();
      const isListed = isListedFor(deps, context.caller);
      const data = [...modelsToList(deps, context.caller)]
        .filter((model) => model.router === undefined && isListed(model))
        .map((model) => ({
          model: model.id,
          weekly_requests: weekly.get(model.id) ?? 0,
          providers: routesOf(model)
            .map((each) => routeMetrics(deps, each))
            .filter(({ requests }) => requests > 0),
        }))
        .filter((line) => line.weekly_requests > 0 || line.providers.length > 0)
        .sort(
          (one, other) =>
            other.weekly_requests - one.weekly_requests ||
            one.model.localeCompare(other.model, "en"),
        );
      return context.json({
        object: "list",
        window_seconds: windowSeconds,
        data: data.map(({ providers, ...line }, index) => ({
          ...line,
          weekly_rank: line.weekly_requests > 0 ? index + 1 : null,
          providers,
        })),
      });
    },
  }),
  // Returns latency and throughput of a model at its providers.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:owner/:model/metrics",
    summary: "Show the latency and throughput of a model.",
    handle: subRoute(metrics),
  }),
  // The same by a percent-encoded slug.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:id/metrics",
    summary: "Show the latency and throughput of a model (percent-encoded id).",
    handle: subRoute(metrics, modelByEncodedId("metrics")),
  }),
];
