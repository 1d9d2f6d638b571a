import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request } from "../../lib/api.ts";

/** A request as the log shows it. */
export interface Generation {
  id: string;
  created_at: string;
  key_id: string;
  model: string;
  requested_model: string;
  provider_name: string | null;
  status: string;
  finish_reason: string | null;
  streamed: boolean;
  tokens_prompt: number;
  tokens_completion: number;
  total_cost: number;
  latency: number | null;
  total_time: number | null;
}

/** Why a request cost what it did, and who served it. */
export interface Explanation {
  id: string;
  explanation: readonly string[];
  lines: readonly { part: string; quantity: number; usd_per_million?: string | number | null; amount_usd: number }[];
  charged_usd: number;
  generation: GenerationDetails;
}

/** What was tried, and what came of it. */
export interface GenerationDetails extends Generation {
  attempts: readonly { provider: string; outcome: string; status?: number | null; reason?: string | null; duration_ms: number }[];
}

/** What the log is narrowed to. */
export interface ActivityFilters {
  model?: string | undefined;
  provider?: string | undefined;
  status?: string | undefined;
  key_id?: string | undefined;
  days?: string | undefined;
}

const dayMs = 86_400_000;

export const generationsQuery = ({ days, ...filters }: ActivityFilters) => infiniteQueryOptions({
  queryKey: ["generations", days, filters],
  initialPageParam: "",
  queryFn: ({ pageParam, signal }) => request<List<Generation>>(`/analytics/generations${queryOf({
    ...filters, limit: 50, after: pageParam, from: days === undefined ? undefined : new Date(Date.now() - Number(days) * dayMs).toISOString(),
  })}`, { signal }),
  getNextPageParam: (page) => (page.has_more ? page.next_cursor ?? undefined : undefined),
});

export const latestQuery = queryOptions({
  queryKey: ["generations", "latest"], queryFn: () => request<List<Generation>>("/analytics/generations?limit=6"),
});

export const explanationQuery = (id: string) => queryOptions({
  queryKey: ["explanation", id], queryFn: () => request<Explanation>(`/generation/${encodeURIComponent(id)}/explain`),
});
