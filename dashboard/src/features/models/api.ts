import { queryOptions } from "@tanstack/react-query";
import { type List, request } from "../../lib/api.ts";
import { withPlaygroundKey } from "../../lib/playground-key.ts";

/** A model of the catalog. */
export interface Model {
  id: string;
  display_name: string;
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
// Only LLM keys learn who would be asked for a model.
export const routePreviewQuery = (workspaceId: string, id: string) =>
  queryOptions({
    queryKey: ["route-preview", workspaceId, id],
    queryFn: () =>
      withPlaygroundKey(workspaceId, (key) =>
        request<List<RouteStep>>(`/models/${id}/routing-preview`, { key }),
      ),
  });
