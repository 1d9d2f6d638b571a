import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { request } from "../../lib/api.ts";

/** Many requests that run within a day, with what came of them so far. */
export interface Batch {
  id: string;
  endpoint: string;
  status:
    | "validating"
    | "failed"
    | "in_progress"
    | "finalizing"
    | "completed"
    | "expired"
    | "cancelling"
    | "cancelled";
  errors: { data: readonly { message: string; line: number | null }[] } | null;
  output_file_id: string | null;
  error_file_id: string | null;
  created_at: number;
  expires_at: number;
  request_counts: { total: number; completed: number; failed: number };
  cost: number;
  reserved: number;
  provider: string | null;
  provider_note: string | null;
  failures: Readonly<Record<string, number>>;
  metadata: Readonly<Record<string, string>> | null;
}

/** What its sender calls a batch in its metadata; else its id. */
export const nameOf = ({ id, metadata }: Batch): string =>
  metadata?.["name"] ?? metadata?.["description"] ?? id;

interface BatchList {
  data: readonly Batch[];
  last_id: string | null;
  has_more: boolean;
}

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
