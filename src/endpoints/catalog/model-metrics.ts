import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelByEncodedId } from "./model-view.ts";
import { routeHealth } from "./route-health.ts";
import { catalogEndpoint, routesOf, subRoute, type Telling } from "./sub-route.ts";

/** Seconds that the measures reach back (contract: the rolling window of percentile preferences). */
const windowSeconds = 300;

const shares = { p50: 0.5, p75: 0.75, p90: 0.9, p95: 0.95, p99: 0.99 } as const;

const percentilesSchema = z
  .object({
    p50: z.number(),
    p75: z.number(),
    p90: z.number(),
    p95: z.number(),
    p99: z.number(),
  })
  .nullable();

const response = z.object({
  object: z.literal("model.metrics"),
  model: z.string(),
  window_seconds: z.int(),
  data: z.array(
    z.object({
      provider: z.string(),
      model: z.string(),
      requests: z.int(),
      error_rate: z.number().nullable(),
      latency_ms: percentilesSchema,
      throughput_tps: percentilesSchema,
    }),
  ),
});

/** Percentiles with one decimal; null where nothing was measured. */
function percentiles(at: (share: number) => number | undefined): Record<string, number> | null {
  const values = Object.entries(shares).map(([name, share]) => [name, at(share)] as const);
  if (values.some(([, value]) => value === undefined)) return null;
  return Object.fromEntries(
    values.map(([name, value]) => [name, Math.round((value ?? 0) * 10) / 10]),
  );
}

const metrics: Telling = (model, { inference: { health } }) => ({
  object: "model.metrics",
  model: model.id,
  window_seconds: windowSeconds,
  data: routesOf(model).map((each) => {
    const measures = health.measuresOf(each.route.provider.id, each.model.id);
    const { requests, error_rate } = routeHealth(health, each);
    return {
      provider: each.route.provider.id,
      model: each.model.id,
      requests,
      error_rate,
      latency_ms: percentiles((share) => measures.firstTokenMs(share)),
      throughput_tps: percentiles((share) => measures.tokensPerSecond(share)),
    };
  }),
});

const shared = {
  ...catalogEndpoint,
  description:
    "Percentiles over the last five minutes at each provider: milliseconds to the first token that a share of the " +
    "answers kept, and tokens a second that a share of them reached. Null without traffic.",
  response,
};

/** Latency and throughput of a model at its providers. */
export const modelMetrics = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models/:owner/:model/metrics",
  summary: "Show latency and throughput of a model.",
  handle: subRoute(metrics),
});

/** The same by a percent-encoded slug. */
export const modelMetricsByEncodedId = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models/:id/metrics",
  summary: "Show latency and throughput of a model (slug percent-encoded in one segment).",
  handle: subRoute(metrics, modelByEncodedId("metrics")),
});
