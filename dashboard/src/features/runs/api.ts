import { queryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { pagedQuery, request, sending } from "../../lib/api.ts";

/** A budget of an agent's run, with what is left of it. */
export type Run = Row<"GET /runs">;

/** A request of a run, with its place in time. */
export type RunRequest = RunTree["generations"][number];

/** A run as a tree, with the requests of all of it. */
export type RunTree = Answers["GET /runs/{id}"]["data"];

/** A run with the runs in it. */
export type RunNode = RunTree["runs"][number];

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
