import { queryOptions } from "@tanstack/react-query";
import { pagedQuery, request, sending } from "../../lib/api.ts";

/** A budget of an agent's run, with what is left of it. */
export interface Run {
  id: string;
  name: string;
  limit: number;
  spent: number;
  remaining: number;
  requests: number;
  max_requests: number | null;
  status: "active" | "paused" | "exhausted" | "expired" | "ended";
  parent_id: string | null;
  created_at: string;
  expires_at: string;
}

/** A request of a run, with its place in time. */
export interface RunRequest {
  id: string;
  run_id: string;
  model: string;
  provider: string;
  status: string;
  cost: number;
  started_at: string;
  duration_ms: number;
}

/** A run with the runs in it. */
export interface RunNode extends Run {
  runs: readonly RunNode[];
}

/** A run as a tree, with the requests of all of it. */
export interface RunTree extends RunNode {
  generations: readonly RunRequest[];
}

export const runPagesQuery = pagedQuery<Run>(["runs"], "/runs");
export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ["runs", id],
    queryFn: () => request<{ data: RunTree }>(`/runs/${encodeURIComponent(id)}`),
  });

export const changeRun = ({
  id,
  ...body
}: {
  id: string;
  limit?: number;
  status?: "active" | "paused" | "ended";
}) => request<{ data: Run }>(`/runs/${id}`, sending("PATCH /runs/{id}", body));
