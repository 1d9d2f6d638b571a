import { queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request } from "../../lib/api.ts";

/** A model of the catalog. */
export interface Model {
  id: string;
  display_name: string;
  /** Unix time in seconds; 0 where it is not known. */
  created?: number;
  provider: string;
  providers: readonly string[];
  category: string;
  context_length: number;
  pricing: { input_per_1m?: number; output_per_1m?: number; billing?: string };
  capabilities: readonly string[];
  supported_parameters?: readonly string[];
  reasoning?: { levels: readonly string[]; default?: string };
  per_upstream?: readonly {
    provider: string;
    context?: { context_length?: number; max_completion_tokens?: number | null };
    pricing?: { input_per_1m?: number; output_per_1m?: number };
    data_policy?: { zdr?: boolean; data_collection?: string };
  }[];
}

/** A place in the order in which providers are tried. */
export interface RouteStep {
  position: number;
  provider: string;
  upstream_model: string;
  reason: string;
  health?: unknown;
}

/** Percentiles over the last minutes; null where nothing was measured. */
interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

/** How a provider answers for a model at this moment. */
export interface RouteMetrics {
  provider: string;
  requests: number;
  error_rate: number | null;
  latency_ms: Percentiles | null;
  throughput_tps: Percentiles | null;
}

/** How a model is used, with its place among the others. */
export interface ModelMetrics {
  model: string;
  weekly_requests: number;
  weekly_rank: number | null;
  providers: readonly RouteMetrics[];
}

/** The days of a provider, and the share of attempts that it answered. */
export interface Uptime {
  provider: string;
  uptime: number | null;
  buckets: readonly { date: string; attempts: number; uptime: number | null }[];
}

/** What a provider asked for a model, from a time on. */
export interface PriceChange {
  provider: string;
  model: string;
  at: string;
  prices: Readonly<Record<string, number>>;
}

/** How long the workspace's own requests took, over time. */
export interface LatencyBucket {
  bucket: string;
  samples: number;
  total: { p50: number | null; p95: number | null };
}

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
