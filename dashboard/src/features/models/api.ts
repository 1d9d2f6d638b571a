import { queryOptions } from "@tanstack/react-query";
import type { Row } from "../../lib/api-types.ts";
import { type List, queryOf, request } from "../../lib/api.ts";

/** A model of the catalog. */
export type Model = Row<"GET /models">;

/** A place in the order in which providers are tried. */
export type RouteStep = Row<"GET /models/{id}/routing-preview">;

/** How a provider answers for a model at this moment. */
export type RouteMetrics = Row<"GET /models/{id}/metrics">;

/** How a model is used, with its place among the others. */
export type ModelMetrics = Row<"GET /models/metrics">;

/** The days of a provider, and the share of attempts that it answered. */
export type Uptime = Row<"GET /models/{id}/uptime">;

/** What a provider asked for a model, from a time on. */
export type PriceChange = Row<"GET /models/{id}/prices">;

/** How long the workspace's own requests took, over time. */
export type LatencyBucket = Row<"GET /analytics/latency">;

/** The models that this workspace reaches: what it blocks is not among them. */
export const reachableQuery = queryOptions({
  queryKey: ["models", "reachable"],
  queryFn: () => request<List<Model>>("/models?presets=0"),
  staleTime: 60_000,
});
export const modelMetricsQuery = queryOptions({
  queryKey: ["models", "metrics"],
  queryFn: () => request<List<ModelMetrics>>("/models/metrics"),
  staleTime: 60_000,
});
export const metricsQuery = (id: string) =>
  queryOptions({
    queryKey: ["model", id, "metrics"],
    queryFn: () => request<List<RouteMetrics>>(`/models/${id}/metrics`),
  });
export const uptimeQuery = (id: string) =>
  queryOptions({
    queryKey: ["model", id, "uptime"],
    queryFn: () => request<List<Uptime>>(`/models/${id}/uptime`),
  });
export const pricesQuery = (id: string) =>
  queryOptions({
    queryKey: ["model", id, "prices"],
    queryFn: () => request<List<PriceChange>>(`/models/${id}/prices`),
  });
export const latencyQuery = (id: string) =>
  queryOptions({
    queryKey: ["model", id, "latency"],
    queryFn: () => request<List<LatencyBucket>>(`/analytics/latency${queryOf({ model: id })}`),
  });
export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: () => request<List<Model>>("/models?all=1"),
  staleTime: 300_000,
});
export const modelQuery = (id: string) =>
  queryOptions({
    queryKey: ["model", id],
    queryFn: () => request<Model>(`/models/${id}`),
    staleTime: 300_000,
  });
export const routePreviewQuery = (id: string) =>
  queryOptions({
    queryKey: ["model", id, "route-preview"],
    queryFn: () => request<List<RouteStep>>(`/models/${id}/routing-preview`),
  });
