import { queryOptions } from "@tanstack/react-query";
import { type List, request } from "../../lib/api.ts";

/** A request as the log shows it. */
export interface Generation {
  id: string;
  created_at: string;
  key_id: string;
  key_name: string | null;
  app_title: string | null;
  model: string;
  requested_model: string;
  provider_name: string | null;
  status: string;
  error: { code: string; status: number } | null;
  finish_reason: string | null;
  streamed: boolean;
  attempts: number;
  fallback: boolean;
  tokens_prompt: number;
  tokens_completion: number;
  tokens_cached: number;
  total_cost: number;
  latency: number | null;
  total_time: number | null;
}

/** The last requests, which the overview and the search show. */
export const latestQuery = queryOptions({
  queryKey: ["generations", "latest"],
  queryFn: () => request<List<Generation>>("/analytics/generations?limit=6"),
});
