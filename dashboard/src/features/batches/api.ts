import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { request } from "../../lib/api.ts";

/** Many requests that run within a day, with what came of them so far. */
export type Batch = Row<"GET /batches">;

/** What its sender calls a batch in its metadata; else its id. */
export const nameOf = ({ id, metadata }: Batch): string =>
  metadata?.["name"] ?? metadata?.["description"] ?? id;

type BatchList = Answers["GET /batches"];

/** Milliseconds between looks at batches that run. */
const lookEveryMs = 2_000;

/** Returns whether something is still to come of a batch. */
const isOpen = ({ status }: Batch): boolean =>
  ["validating", "in_progress", "finalizing", "cancelling"].includes(status);

export const batchPagesQuery = infiniteQueryOptions({
  queryKey: ["batches", "*"],
  initialPageParam: "",
  queryFn: ({ pageParam }) =>
    request<BatchList>(`/batches?limit=50${pageParam === "" ? "" : `&after=${pageParam}`}`),
  getNextPageParam: ({ has_more: hasMore, last_id: last }) =>
    hasMore ? (last ?? undefined) : undefined,
  refetchInterval: ({ state }) =>
    state.data?.pages.some(({ data }) => data.some(isOpen)) === true ? lookEveryMs : false,
});

export const batchQuery = (id: string) =>
  queryOptions({
    queryKey: ["batches", id],
    queryFn: () => request<Batch>(`/batches/${encodeURIComponent(id)}`),
    refetchInterval: ({ state }) =>
      state.data !== undefined && isOpen(state.data) ? lookEveryMs : false,
  });

export const cancelBatch = (id: string) =>
  request<Batch>(`/batches/${encodeURIComponent(id)}/cancel`, { method: "POST" });
